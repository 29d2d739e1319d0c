use super::*;
use crate::farm::Farm;
use crate::fixture::farm;
use crate::state::{AdminOrder, Event};
use proptest::prelude::*;
use std::time::Instant;

const ANY: Want<'_> = Want::Any { key: Key { source: None, request: None, bytes: None }, avoided: &[] };

fn claim(farm: &Farm, want: Want<'_>) -> Claim {
    match farm.claim(want) {
        Grant::Now(claim) => claim,
        other => panic!("{other:?}"),
    }
}

fn wait(farm: &Farm, want: Want<'_>) -> Waiter {
    match farm.claim(want) {
        Grant::Wait(waiter) => waiter,
        other => panic!("{other:?}"),
    }
}

fn poll(waiter: &mut Waiter) -> Poll<Result<Claim, Retry>> {
    Pin::new(waiter).poll(&mut Context::from_waker(Waker::noop()))
}

fn is_granted(waiter: &mut Waiter) -> bool {
    matches!(poll(waiter), Poll::Ready(Ok(_)))
}

#[test]
fn slots_go_to_the_oldest_of_both_queues() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let held = claim(&farm, ANY);
    let mut first = wait(&farm, ANY);
    let mut second = wait(&farm, Want::Server(0));
    let mut third = wait(&farm, ANY);
    assert_eq!((first.backend_queue(), first.server_queue()), (Some(1), None));
    assert_eq!((second.server_queue(), third.backend_queue()), (Some(1), Some(1)));
    assert_eq!((farm.queued(), farm.servers()[0].queued(), farm.waiting()), ((2, 2), 1, 3));
    drop(held);
    let Poll::Ready(Ok(held)) = poll(&mut first) else { panic!() };
    assert!(poll(&mut second).is_pending());
    drop(held);
    let Poll::Ready(Ok(held)) = poll(&mut second) else { panic!() };
    drop(held);
    assert_eq!((second.server_queue(), third.backend_queue()), (Some(1), Some(2)), "how many went in, and oneself");
    assert!(is_granted(&mut third));
    assert_eq!((farm.queued(), farm.servers()[0].queued(), farm.servers()[0].served()), ((0, 2), 0, 0));
    farm.clear_peak();
    farm.servers().iter().for_each(|server| server.clear_peaks());
    assert_eq!((farm.queued(), farm.servers()[0].queued_max()), ((0, 0), 0));
}

#[test]
fn the_lower_class_goes_first_and_then_who_is_due() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let mut held = Some(claim(&farm, ANY));
    let join = |class, offset_ms| match farm.claim_as(ANY, Precedence { class, offset_ms }) {
        Grant::Wait(waiter) => waiter,
        other => panic!("{other:?}"),
    };
    let mut waiters = [join(1, 0), join(0, 100_000), join(0, 0), join(0, -100_000), join(-1, 500_000)];
    for next in [4, 3, 2, 1, 0] {
        drop(held.take());
        let ready: Vec<_> = waiters.iter_mut().map(poll).collect();
        for (at, ready) in ready.into_iter().enumerate() {
            match ready {
                Poll::Ready(Ok(claim)) if at == next => held = Some(claim),
                Poll::Ready(Ok(_)) => panic!("{at} before {next}"),
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        assert!(held.is_some(), "{next}");
    }
    assert_eq!(waiters.map(|waiter| waiter.backend_queue()), [5, 4, 3, 2, 1].map(Some));
}

#[test]
fn who_leaves_a_line_has_let_nobody_in() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let held = claim(&farm, ANY);
    let (first, second, mut third) = (wait(&farm, ANY), wait(&farm, ANY), wait(&farm, ANY));
    drop(first);
    assert_eq!((second.backend_queue(), third.backend_queue()), (Some(1), Some(1)));
    drop(held);
    assert_eq!((second.backend_queue(), third.backend_queue()), (Some(1), Some(2)));
    drop(second);
    assert!(is_granted(&mut third));
    assert_eq!(third.backend_queue(), Some(2), "what came later counts no more");
}

#[test]
fn a_slot_on_its_way_to_one_who_left_goes_to_the_next() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let held = claim(&farm, ANY);
    let first = wait(&farm, ANY);
    let mut second = wait(&farm, ANY);
    drop(held);
    drop(first);
    assert!(is_granted(&mut second));
}

#[test]
fn a_full_queue_says_so() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1 maxqueue 1");
    let _held = claim(&farm, Want::Server(0));
    let waiter = wait(&farm, Want::Server(0));
    assert!(matches!(farm.claim(Want::Server(0)), Grant::Full));
    drop(waiter);
    wait(&farm, Want::Server(0));
}

#[test]
fn those_who_wait_for_a_server_that_goes_down_look_for_another() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1");
    let held = [claim(&farm, Want::Server(0)), claim(&farm, Want::Server(1))];
    let (mut bound, mut any) = (wait(&farm, Want::Server(0)), wait(&farm, ANY));
    farm.set_admin(&farm.servers()[0], AdminOrder::Maint, Instant::now());
    assert!(matches!(poll(&mut bound), Poll::Ready(Err(Retry))));
    assert!(poll(&mut any).is_pending());
    farm.set_admin(&farm.servers()[1], AdminOrder::Maint, Instant::now());
    assert!(matches!(poll(&mut any), Poll::Ready(Err(Retry))));
    assert!(matches!(farm.claim(ANY), Grant::NoServer));
    drop(held);
    assert_eq!(farm.servers()[0].served(), 0);
}

#[test]
fn a_grant_that_was_not_taken_is_void_when_its_server_goes_down() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1");
    let held = [claim(&farm, Want::Server(0)), claim(&farm, Want::Server(1))];
    let (mut any, mut bound) = (wait(&farm, ANY), wait(&farm, Want::Server(1)));
    drop(held);
    assert_eq!((farm.servers()[0].served(), farm.servers()[1].served(), farm.waiting()), (1, 1, 0), "both are granted");
    for server in farm.servers().iter() {
        farm.set_admin(server, AdminOrder::Maint, Instant::now());
    }
    assert!(matches!(poll(&mut any), Poll::Ready(Err(Retry))));
    assert!(matches!(poll(&mut bound), Poll::Ready(Err(Retry))));
    assert_eq!((farm.servers()[0].served(), farm.servers()[1].served()), (0, 0), "the slots are free again");
}

#[test]
fn who_wants_a_server_although_it_is_down_gets_its_slot() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    farm.set_admin(&farm.servers()[0], AdminOrder::Maint, Instant::now());
    let held = claim(&farm, Want::Server(0));
    let mut waiter = wait(&farm, Want::Server(0));
    drop(held);
    assert!(is_granted(&mut waiter));
}

#[test]
fn a_backup_that_takes_over_serves_those_who_wait_already() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1 backup");
    let _held = claim(&farm, ANY);
    let mut waiter = wait(&farm, ANY);
    assert!(poll(&mut waiter).is_pending());
    farm.set_admin(&farm.servers()[0], AdminOrder::Maint, Instant::now());
    let Poll::Ready(Ok(claim)) = poll(&mut waiter) else { panic!("the backup has a free slot") };
    assert_eq!(claim.server().index(), 1);
}

#[test]
fn a_larger_limit_lets_the_next_in() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let _held = claim(&farm, ANY);
    let mut waiter = wait(&farm, ANY);
    farm.set_maxconn(&farm.servers()[0], 2);
    assert!(is_granted(&mut waiter));
}

#[test]
fn nobody_waits_where_the_last_server_went_meanwhile() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1");
    let _held = claim(&farm, ANY);
    let roster = || {
        let server = farm.servers()[0].clone();
        server.set_state(server.state().next(server.settings().rules(), Event::Admin(AdminOrder::Maint)));
        farm.rebuild();
        farm.roster.load()
    };
    assert!(matches!(farm.backlog.wait_for_any(roster, Precedence::default()), Grant::NoServer));
    assert_eq!(farm.waiting(), 0);
}

#[test]
fn a_server_that_drains_takes_none_that_wait_for_any() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1");
    let a = claim(&farm, Want::Server(0));
    let b = claim(&farm, Want::Server(1));
    farm.set_admin(&farm.servers()[0], AdminOrder::Drain, Instant::now());
    let mut waiter = wait(&farm, ANY);
    drop(a);
    assert!(poll(&mut waiter).is_pending());
    drop(b);
    assert!(is_granted(&mut waiter));
}

#[derive(Clone, Debug)]
enum Op {
    ClaimServer(usize),
    ClaimAny,
    Poll(usize),
    DropWaiter(usize),
    DropClaim(usize),
    Order(usize, AdminOrder),
}

fn op() -> impl Strategy<Value = Op> {
    let orders = [AdminOrder::Maint, AdminOrder::Drain, AdminOrder::Ready, AdminOrder::Ready];
    prop_oneof![
        2 => (0usize..2).prop_map(Op::ClaimServer),
        4 => Just(Op::ClaimAny),
        3 => any::<usize>().prop_map(Op::Poll),
        2 => any::<usize>().prop_map(Op::DropWaiter),
        4 => any::<usize>().prop_map(Op::DropClaim),
        1 => (0usize..2, prop::sample::select(orders.to_vec())).prop_map(|(server, order)| Op::Order(server, order)),
    ]
}

fn pick<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    if list.is_empty() { None } else { Some(list.swap_remove(at % list.len())) }
}

proptest! {
    #[test]
    fn no_slot_is_lost_and_none_idles_while_one_waits(ops in prop::collection::vec(op(), 0..120)) {
        let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 2 maxqueue 3");
        let (mut claims, mut waiters) = (Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::ClaimServer(_) | Op::ClaimAny => {
                    let want = if let Op::ClaimServer(server) = op { Want::Server(server) } else { ANY };
                    match farm.claim(want) {
                        Grant::Now(claim) => claims.push(claim),
                        Grant::Wait(waiter) => waiters.push(waiter),
                        Grant::Full | Grant::NoServer => {}
                    }
                }
                Op::Poll(at) => if let Some(mut waiter) = pick(&mut waiters, at) {
                    match poll(&mut waiter) {
                        Poll::Ready(Ok(claim)) => claims.push(claim),
                        Poll::Ready(Err(Retry)) => {}
                        Poll::Pending => waiters.push(waiter),
                    }
                },
                Op::DropWaiter(at) => drop(pick(&mut waiters, at)),
                Op::DropClaim(at) => drop(pick(&mut claims, at)),
                Op::Order(server, order) => farm.set_admin(&farm.servers()[server], order, Instant::now()),
            }
            for server in farm.servers().iter() {
                let held = claims.iter().filter(|claim: &&Claim| claim.server().index() == server.index()).count() as u32;
                prop_assert!(server.served() >= held && server.served() <= server.maxconn());
                prop_assert!(server.queued() == 0 || server.served() == server.maxconn());
                prop_assert!(farm.queued().0 == 0 || !server.is_eligible() || server.served() == server.maxconn());
            }
        }
        drop((claims, waiters));
        prop_assert_eq!(farm.queued().0, 0);
        prop_assert!(farm.servers().iter().all(|server| server.served() == 0 && server.queued() == 0));
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn threads_never_wait_for_a_slot_that_is_free() {
    let farm = farm("server a 10.0.0.1:80 maxconn 1\nserver b 10.0.0.2:80 maxconn 1");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let farm = &farm;
            scope.spawn(move || {
                for turn in 0..3000 {
                    let want = if (turn + thread) % 3 == 0 { Want::Server(turn % 2) } else { ANY };
                    match farm.claim(want) {
                        Grant::Now(claim) => drop(claim),
                        Grant::Wait(waiter) if turn % 7 == 0 => drop(waiter),
                        Grant::Wait(waiter) => drop(block_on(waiter).unwrap()),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert!(farm.servers().iter().all(|server| server.served() == 0 && server.queued() == 0));
}
