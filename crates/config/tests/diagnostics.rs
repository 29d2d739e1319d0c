//! Messages that a person sees for a file with many problems.

mod toy;

#[test]
fn every_problem_of_a_file_in_one_run() {
    let (_, diagnostics) = toy::load(&[include_bytes!("golden/problems.cfg")]);
    let shown: String = diagnostics.iter().map(|diagnostic| diagnostic.on_terminal(1234, false)).collect();
    assert!(shown == include_str!("golden/problems.txt"), "{shown}");
}
