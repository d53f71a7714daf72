//! What the kernel says about a process.

/// A field of `/proc/<process>/<file>`, such as `VmRSS` of `status`: its first number.
pub(crate) fn kernel_says(process: &str, file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let rest = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// KiB as MiB.
pub(crate) fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}
