//! Whether it scales as promised: `cargo bench --bench scale`, with `LAUNCHWAY_SCALE=10000` for the number of deployment
//! configs (1,000 if nothing is said) and `LAUNCHWAY_PUSHES` for how many pushes make a history (100).
//!
//! Measured are the real program and its processes, beside a plain loop that starts the same shims and programs. Each pod
//! is a shim and a `sleep`; 10,000 of them need about 10 GB of memory, and 20,000 process ids. `LAUNCHWAY_PUSHES=0` measures no
//! pushes.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod cold;
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod import;
    pub(crate) mod kernel;
    pub(crate) mod processor;
}
mod scaling {
    pub(crate) mod declared;
    pub(crate) mod first_push;
    pub(crate) mod plain_loop;
    pub(crate) mod pushes;
    pub(crate) mod watched;
}

fn main() {
    let services = number("LAUNCHWAY_SCALE", 1_000);
    let pushes = number("LAUNCHWAY_PUSHES", 100);
    println!("{services} deployment configs of one pod each; {}", load());
    let rate = scaling::first_push::measure(services);
    let plain = scaling::plain_loop::measure(services);
    println!("deployed at {:.0} % of the plain loop's rate", 100.0 * rate / plain);
    let sizes = [100, 1_000, 10_000].into_iter().filter(|size| *size <= services && pushes > 0);
    sizes.for_each(|size| scaling::pushes::measure(size, pushes));
    println!("at the end: {}", load());
}

fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |value| value.parse().unwrap())
}

/// What else the machine has to do says how much a figure is worth.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    format!("load {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
