//! The memory that a container or a unit of systemd may have: the least limit of the process's control groups, of version 2 or 1.

use std::fs;
use std::path::Path;

/// Returns the memory limit in bytes; `None` if there is no limit. `groups` is the content of `/proc/self/cgroup`, `root` the
/// folder where control groups are mounted.
pub(super) fn memory(groups: &str, root: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| of_group(line, root)).min()
}

/// The least limit of a group and those that it is in. Inside of a container only the container's own may be visible, as the root.
fn of_group(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (root, file) = match controllers {
        "" => (root.to_path_buf(), "memory.max"),
        list if list.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
        _ => return None,
    };
    let group = root.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take(MOST_GROUPS).take_while(|group| group.starts_with(&root));
    // Version 2 has `max` where there is no limit.
    let limit = |group: &Path| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    groups.filter_map(limit).min()
}

/// Groups that are looked at, from the process's own on.
const MOST_GROUPS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let memory = |groups: &str| memory(groups, root.path());
        write("system.slice/memory.max", "500000000\n");
        write("system.slice/terse.service/memory.max", "max\n");
        assert_eq!(memory("0::/system.slice/terse.service\n"), Some(500_000_000));
        assert_eq!(memory("0::/other\n1:cpu:/\n"), None);
        write("memory.max", "268435456\n");
        assert_eq!(memory("0::/\n"), Some(268_435_456), "in a container");
        assert_eq!(memory("0::/../../gone\n"), Some(268_435_456));
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/docker/memory.limit_in_bytes", "1000\n");
        assert_eq!(memory("9:name=systemd:/\n4:cpu,memory:/docker\n"), Some(1000));
        assert_eq!(memory("nothing\n"), None);
    }
}
