//! Description of the machine that was measured on.

use std::fs;

/// Processor, cores, memory and kernel.
pub(crate) fn description() -> String {
    let field = |text: &str, name: &str| {
        text.lines().find(|l| l.starts_with(name)).and_then(|l| l.split(':').nth(1)).map(|v| v.trim().to_owned())
    };
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let kilobytes: u64 = field(&memory, "MemTotal").and_then(|v| v.split(' ').next()?.parse().ok()).unwrap_or(0);
    let cores = crate::cores::available().len();
    let system = field(&read("/etc/os-release").replace('=', ":"), "PRETTY_NAME").unwrap_or_else(|| "Linux".into());
    let virtual_machine = if cpu.contains(" hypervisor") { ", a virtual machine" } else { "" };
    format!(
        "{}, {cores} cores{virtual_machine}, {} GiB of memory, {}, Linux {}",
        field(&cpu, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        kilobytes.div_ceil(1024 * 1024),
        system.trim_matches('"'),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}
