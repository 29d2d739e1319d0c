use super::super::tests::{Bench, block_on};
use super::super::{Progress, Queue, Work};
use super::*;
use crate::coder::conformance::decode_whole;
use crate::coder::{Engine, Pool, Tuning};
use crate::memory::Owner;
use std::sync::mpsc::Sender;

fn kind(body: &[u8]) -> Kind {
    Kind { name: Name::of(&Owner::new(&[7; 32], "be"), body), coding: Coding::Gzip, level: Level(6) }
}

/// Work of a kind, a single slice long, and a channel that lets it go on.
fn alike(bench: &Bench, name: u8) -> (Work, Sender<()>) {
    let (work, go) = bench.work(name, 1);
    (work.of_kind(Some(kind(b"body"))), go)
}

fn out(job: crate::offload::Job) -> Option<Vec<u8>> {
    block_on(job).0.ok().map(|work| work.into_parts().1)
}

#[test]
fn one_works_and_all_get_what_comes_out() {
    let (bench, queue) = (Bench::new(), Queue::start(2, 0, 2).unwrap());
    let works: Vec<_> = (1..=4).map(|name| alike(&bench, name)).collect();
    let (jobs, gates): (Vec<_>, Vec<_>) = works.into_iter().map(|(work, go)| (queue.submit(work).ok().unwrap(), go)).unzip();
    assert_eq!(bench.began.recv(), Ok(1));
    gates[0].send(()).unwrap();
    let outs: Vec<_> = jobs.into_iter().map(out).collect();
    assert!(outs.iter().all(|out| out.as_ref().is_some_and(|out| out.iter().all(|byte| *byte == 1) && !out.is_empty())));
    assert!(bench.began.try_recv().is_err());
    assert_eq!((queue.numbers().jobs.load(Relaxed), queue.numbers().shared.load(Relaxed)), (1, 3));
    // It is over: a job that comes now works, and another kind did all the time.
    let ((next, go), (other, go_other)) = (alike(&bench, 5), bench.work(6, 1));
    let (next, other) = (queue.submit(next).ok().unwrap(), queue.submit(other.of_kind(Some(kind(b"other")))).ok().unwrap());
    let mut began = [bench.began.recv().unwrap(), bench.began.recv().unwrap()];
    began.sort_unstable();
    assert_eq!(began, [5, 6]);
    [go, go_other].iter().for_each(|go| go.send(()).unwrap());
    assert_eq!((out(next).unwrap()[0], out(other).unwrap()[0]), (5, 6));
    assert!(queue.line.twins.lock().is_empty());
}

#[test]
fn who_goes_leaves_the_next_to_lead() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|name| alike(&bench, name));
    let [one, two, three, four] = [first.0, second.0, third.0, fourth.0].map(|work| queue.submit(work).ok().unwrap());
    assert_eq!(bench.began.recv(), Ok(1));
    // The job that leads, and a job that waits.
    drop(one);
    drop(two);
    assert_eq!(queue.numbers().cancelled.load(Relaxed), 2);
    assert_eq!(queue.line.twins.lock().values().map(Vec::len).collect::<Vec<_>>(), [2]);
    first.1.send(()).unwrap();
    // Work that is done all the same is given away.
    assert_eq!((out(three).unwrap()[0], out(four).unwrap()[0]), (1, 1));
    assert!(queue.line.twins.lock().is_empty());
    assert!(bench.began.try_recv().is_err());
}

#[test]
fn what_was_not_begun_is_not_given_away() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (busy, go_busy) = bench.work(9, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(9));
    let [first, second, third] = [1, 2, 3].map(|name| alike(&bench, name));
    let [one, two, three] = [first.0, second.0, third.0].map(|work| queue.submit(work).ok().unwrap());
    drop(one);
    go_busy.send(()).unwrap();
    assert_eq!(bench.began.recv(), Ok(2));
    second.1.send(()).unwrap();
    assert_eq!((out(two).unwrap()[0], out(three).unwrap()[0]), (2, 2));
    assert!(block_on(busy).0.is_ok());
}

#[test]
fn work_that_breaks_leaves_the_next_to_lead() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (broken, go_broken) = bench.broken(1);
    let broken = queue.submit(broken.of_kind(Some(kind(b"body")))).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(1));
    let [second, third] = [2, 3].map(|name| alike(&bench, name));
    let [two, three] = [second.0, third.0].map(|work| queue.submit(work).ok().unwrap());
    go_broken.send(()).unwrap();
    assert!(out(broken).is_none());
    assert_eq!(bench.began.recv(), Ok(2));
    second.1.send(()).unwrap();
    assert_eq!((out(two).unwrap()[0], out(three).unwrap()[0]), (2, 2));
}

#[test]
fn work_that_found_the_line_full_is_shared_too() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 1).unwrap());
    let [busy, waiting] = [8, 9].map(|name| bench.work(name, 1));
    let busy_job = queue.submit(busy.0).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(8));
    let waiting_job = queue.submit(waiting.0).ok().unwrap();
    let [first, second] = [1, 2].map(|name| alike(&bench, name));
    let Err(mut work) = queue.submit(first.0) else { panic!("there is no room") };
    let two = queue.submit(second.0).ok().unwrap();
    first.1.send(()).unwrap();
    while work.step(None, crate::spent::Site::Worker).unwrap() != Progress::Done {}
    work.share();
    assert_eq!(out(two).unwrap()[0], 1);
    [busy.1, waiting.1].iter().for_each(|go| go.send(()).unwrap());
    assert!(block_on(busy_job).0.is_ok() && block_on(waiting_job).0.is_ok());
}

#[test]
fn a_large_body_that_leads_after_another_is_done_in_parts() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (busy, go_busy) = bench.work(9, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(9));
    let body: Vec<u8> = (0u32..).flat_map(|i| format!("row {}; ", i * 7 % 977).into_bytes()).take(700_000).collect();
    let pool = Arc::new(Pool::new(Tuning::default()));
    let [first, second] = [1, 2].map(|_| {
        let work = Work::whole(Engine::of(Coding::Gzip), Level(6), pool.clone(), body.clone().into());
        queue.submit(work.of_kind(Some(kind(&body)))).ok().unwrap()
    });
    drop(first);
    let slot = second.slot();
    let work = slot.take().unwrap();
    assert!(work.as_whole().is_none(), "it would be done at one go");
    assert!(slot.put_back(work));
    go_busy.send(()).unwrap();
    assert!(decode_whole(Coding::Gzip, &out(second).unwrap()) == body);
    assert!(block_on(busy).0.is_ok());
}

#[test]
fn an_ending_queue_leaves_nobody_behind() {
    let (bench, queue) = (Bench::new(), Queue::start(1, 0, 8).unwrap());
    let (busy, go_busy) = bench.work(9, 1);
    let busy = queue.submit(busy).ok().unwrap();
    assert_eq!(bench.began.recv(), Ok(9));
    let works: Vec<_> = (0..5000u32).map(|name| alike(&bench, name as u8)).collect();
    let jobs: Vec<_> = works.into_iter().map(|(work, _)| queue.submit(work).ok().unwrap()).collect();
    queue.line.stop();
    go_busy.send(()).unwrap();
    drop(queue);
    assert!(block_on(busy).0.is_ok());
    assert!(jobs.into_iter().all(|job| out(job).is_none()));
}
