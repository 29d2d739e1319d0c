//! Conversations with a master whose workers are tasks, or silent. Time stands still except for tests that wait for it.

use super::*;
use crate::commands::fixture::{WEB, context};
use crate::context::Context;
use crate::settings::Level;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// A master with a worker that serves (7), one that leaves (5), one that starts (9) and one that is silent (6).
struct Staff {
    worker: Arc<Context>,
    manners: Mutex<Vec<Manner>>,
    /// Other ends of connections that get no answer.
    unanswered: Mutex<HashMap<u32, UnixStream>>,
}

fn worker(pid: u32, stage: Stage, reloads: u32) -> Worker {
    let version = (stage != Stage::Starting).then(|| "3.5-dev5".to_owned());
    Worker { pid, stage, reloads, started: Instant::now(), version, descriptor: 11 }
}

impl Overseer for Staff {
    fn workers(&self) -> Vec<Worker> {
        vec![
            worker(7, Stage::Serving, 0),
            worker(9, Stage::Starting, 0),
            worker(6, Stage::Leaving, 1),
            worker(5, Stage::Leaving, 2),
        ]
    }

    fn reloads(&self) -> Reloads {
        Reloads { all: 4, failed: 1 }
    }

    fn startup_log(&self) -> String {
        "one\n\ntwo\n".into()
    }

    fn connect(&self, pid: u32, manner: Manner) -> io::Result<UnixStream> {
        let (mine, theirs) = UnixStream::pair()?;
        self.manners.lock().unwrap().push(manner);
        match pid {
            5 | 7 => drop(tokio::spawn(crate::serve::attend(theirs, manner, self.worker.clone()))),
            6 => drop(self.unanswered.lock().unwrap().insert(pid, theirs)),
            _ => return Err(io::Error::other("it has ended")),
        }
        Ok(mine)
    }

    fn reload(&self, hard: bool) -> oneshot::Receiver<Reloaded> {
        let (tell, told) = oneshot::channel();
        tell.send(Reloaded { success: !hard, log: if hard { "wrong\n\nvery\n".into() } else { String::new() } }).unwrap();
        told
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// Answer to a client of that level that sends all of this, and its settings as sent to workers.
async fn talk(said: &[u8], level: Level) -> (String, Vec<Manner>) {
    let worker = context(WEB);
    let socket = StatsSocket { level, ..worker.settings.sockets[0].clone() };
    let staff = Arc::new(Staff { worker, manners: Mutex::default(), unanswered: Mutex::default() });
    let office = Office {
        version: "3.5-dev5".into(),
        listed: "3.5-dev5-terse0".into(),
        pid: 3,
        started: Instant::now(),
        sockets: vec![socket],
        timeout: Duration::from_secs(60),
        maxconn: 2,
        conversations: Arc::default(),
        overseer: staff.clone(),
    };
    let (mut ours, theirs) = duplex(1 << 20);
    ours.write_all(said).await.unwrap();
    ours.shutdown().await.unwrap();
    super::talk(theirs, 0, &office).await;
    let mut text = String::new();
    ours.read_to_string(&mut text).await.unwrap();
    let manners = staff.manners.lock().unwrap().clone();
    (text, manners)
}

fn answer(said: &str) -> String {
    run(talk(said.as_bytes(), Level::Admin)).0
}

const VERSION: &str = "3.5-dev5\n\n";
const LEVEL: &str = "admin\n\n";

#[test]
fn commands_are_the_masters_or_a_workers() {
    assert_eq!(answer("show version\nshow cli level\nshow version"), format!("{VERSION}{LEVEL}"));
    assert_eq!(answer("@1 show version;@1 show cli level\n"), format!("{VERSION}{LEVEL}"));
    assert_eq!(answer("@!5 echo a\\;b\\ \\ c;@ show version;\n"), format!("a;b  c\n\n{VERSION}"));
    assert_eq!(answer("@1;echo a;show version\necho b\n@;show version\n"), format!("a\n\n{VERSION}b\n\n{VERSION}"));
    assert!(answer("echo a\n").starts_with("'echo' is a command of workers: write '@1' before it."));
    assert!(answer("show sess\n").starts_with("'show sess' is a command of workers"));
    assert!(answer("mcli-debug-mode on\n").starts_with("'mcli-debug-mode' is not supported"));
    assert!(answer("xyzzy\n").starts_with("Unknown command: 'xyzzy'"));
    assert!(answer("@1 show nothing\n").starts_with("Unknown command: 'show'"));
    assert!(answer("help\n").contains("\n  show proc [debug] ") && !answer("help\n").contains("show stat"));
}

#[test]
fn prefixes_that_lead_nowhere_are_named() {
    for prefix in ["@2", "@!9", "@!77", "@x"] {
        let expected = format!("Can't find the target PID matching the prefix '{prefix}'\n\n");
        assert_eq!(answer(&format!("{prefix} show info\n")), expected);
        assert_eq!(answer(&format!("{prefix};show version\n")), format!("{expected}{VERSION}"));
        assert_eq!(answer(&format!("@{prefix} show info\n")), expected);
    }
    assert!(answer("@@ show info\n").starts_with("'@@' leads to workers"));
}

#[test]
fn a_worker_that_is_silent_is_left() {
    assert_eq!(answer("@!6 show info;show version\n"), format!("Process 6 does not answer.\n\n{VERSION}"));
    assert_eq!(answer("@@!6 show info\n"), "Process 6 does not answer.\n\n");
}

#[test]
fn payloads_go_on() {
    assert_eq!(answer("@1 echo a <<\nb\n\n@1 echo c\n"), "a\n\nc\n\n");
    assert_eq!(answer("@1;echo a;echo b <<end\n\nend\nshow version\n"), format!("a\n\nb\n\n{VERSION}"));
    assert_eq!(answer("@@1 echo a;echo b <<end\n\nend\n"), "a\n\nb\n\n");
}

#[test]
fn whole_lines_lead_into_a_worker() {
    assert_eq!(answer("@@1 show version;echo a\n"), format!("{VERSION}a\n\n"));
    assert_eq!(answer("@@1\necho a\necho b\nquit\n"), "\na\n\nb\n\n", "what comes behind it is the worker's");
    assert_eq!(answer("prompt\n@@1\necho a\nquit\n"), "master[ReloadFailed]> \n> a\n\n> master[ReloadFailed]> ");
}

#[test]
fn prompts_name_the_process_and_the_modes() {
    assert_eq!(answer("prompt\n@1\nexpert-mode on;experimental-mode on\n"), "master[ReloadFailed]> 7> 7(e)> 7(xe)> ");
    assert_eq!(
        answer("prompt\nprompt\nshow version\nprompt\n\n"),
        format!("master[ReloadFailed]> {VERSION}master[ReloadFailed]> master[ReloadFailed]> ")
    );
    assert_eq!(answer("prompt timed\n@!5\nquit\n"), "[0:00:00:00] master[ReloadFailed]> [0:00:00:00] 5> ");
    assert!(answer("prompt help\n").starts_with("Usage: prompt "));
}

#[test]
fn modes_and_levels_go_along() {
    let (text, manners) = run(talk(b"expert-mode on;@1;experimental-mode on;echo a;operator;expert-mode;echo b\n", Level::Admin));
    assert_eq!(text, "a\n\nPermission denied\n\nb\n\n");
    let seen: Vec<_> = manners.iter().map(|manner| (manner.level, manner.expert, manner.experimental)).collect();
    assert_eq!(seen, [(Level::Admin, true, true), (Level::Operator, true, true)]);
    let says = |text: &str, level| run(talk(text.as_bytes(), level)).0;
    assert_eq!(says("@1 disable server be/a\n", Level::Operator), "Permission denied\n\n");
    assert_eq!(says("@@1 disable server be/a\n", Level::User), "Permission denied\n\n");
    for command in ["show proc", "reload", "hard-reload", "operator", "expert-mode on", "show startup-logs", "show cli sockets"] {
        assert_eq!(says(&format!("{command}\n"), Level::User), "Permission denied\n\n", "{command}");
    }
    assert_eq!(says("set severity-output number;@1 show proc\n", Level::User).get(..5), Some("[3]: "));
}

#[test]
fn processes_are_listed() {
    let expected = "\
#<PID>          <type>          <reloads>       <uptime>        <version>      \n\
3               master          4 [failed: 1]   0d00h00m00s     3.5-dev5-terse0\n\
# workers\n\
7               worker          0               0d00h00m00s     3.5-dev5       \n\
9               worker          0               0d00h00m00s                    \n\
# old workers\n\
6               worker          1               0d00h00m00s     3.5-dev5       \n\
5               worker          2               0d00h00m00s     3.5-dev5       \n\n";
    assert_eq!(answer("show proc\n"), expected);
    let debug = answer("show proc debug\n");
    assert!(debug.lines().next().is_some_and(|line| line.ends_with("\t\t <ipc_fd[0]>     <ipc_fd[1]>    ")), "{debug}");
    assert!(debug.contains("\t\t 11              0              \n"), "{debug}");
    assert_eq!(answer("show proc x\n"), "'show proc' only supports 'debug' as argument\n\n");
    assert_eq!(answer("show startup-logs\n"), "one\ntwo\n\n");
    assert_eq!(answer("show cli sockets\n"), "# socket lvl processes\nunix@/run/terse.sock admin master\n\n");
}

#[test]
fn reloads_end_the_conversation() {
    assert_eq!(answer("reload\nshow version\n"), "Success=1\n\n");
    assert_eq!(answer("hard-reload;show version\n"), "Success=0\n--\nwrong\nvery\n\n");
}

#[test]
fn lines_have_a_limit() {
    assert_eq!(answer(&"x".repeat(20_000)), "The command line is too long.\n\n");
    assert!(answer(&("x ".repeat(70) + "\n")).starts_with("Too many arguments."));
    assert!(answer(&("@1 ".to_owned() + &"x ".repeat(70) + "\n")).starts_with("Too many arguments."));
}
