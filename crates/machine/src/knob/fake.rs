//! A host in a temporary directory, with pools that follow `set_max_huge_pages` as far as the tests need it, files that hold
//! a word or one of several in brackets, and modules that can be loaded and unloaded.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use vmtax_core::units::PageSize;

use super::{Host, Kernel, Pool};

/// The host and its directory, which goes with it.
#[derive(Debug)]
pub(crate) struct FakeHost {
    directory: tempfile::TempDir,
    kernel: Arc<FakeKernel>,
}

#[derive(Debug)]
pub(crate) struct FakeKernel {
    state: Mutex<State>,
    modules: PathBuf,
}

#[derive(Debug)]
struct State {
    pools: HashMap<PageSize, Pool>,
    /// Most pages the memory has for each pool.
    limits: HashMap<PageSize, u64>,
    available_mib: u64,
    boot: String,
    writes: Vec<u64>,
    refusal: Option<io::ErrorKind>,
    module_calls: Vec<String>,
    is_loading_refused: bool,
    is_unloading_refused: bool,
}

impl FakeHost {
    pub fn new(limit_large: u64, limit_giant: u64) -> Self {
        let empty = Pool { total: 0, free: 0, reserved: 0, surplus: 0 };
        let state = State {
            pools: HashMap::from([(PageSize::Large, empty), (PageSize::Giant, empty)]),
            limits: HashMap::from([(PageSize::Large, limit_large), (PageSize::Giant, limit_giant)]),
            available_mib: 64 << 10,
            boot: "boot-a".into(),
            writes: Vec::new(),
            refusal: None,
            module_calls: Vec::new(),
            is_loading_refused: false,
            is_unloading_refused: false,
        };
        let directory = tempfile::tempdir().unwrap();
        let modules = directory.path().join("sys/module");
        FakeHost { directory, kernel: Arc::new(FakeKernel { state: Mutex::new(state), modules }) }
    }

    pub fn host(&self) -> Host {
        let root = self.directory.path();
        Host { kernel: self.kernel.clone(), ..Host::at(root, root.join("sys"), root.join("proc")) }
    }

    /// Somebody else changes the pool.
    pub fn pool(&self, page: PageSize, change: impl FnOnce(&mut Pool)) {
        change(self.kernel.state.lock().unwrap().pools.get_mut(&page).unwrap());
    }

    pub fn persistent(&self, page: PageSize) -> u64 {
        self.kernel.state.lock().unwrap().pools[&page].persistent()
    }

    /// Every value written to a pool, in order.
    pub fn writes(&self) -> Vec<u64> {
        self.kernel.state.lock().unwrap().writes.clone()
    }

    /// Most pages that the memory has for a pool from now on.
    pub fn set_limit(&self, page: PageSize, pages: u64) {
        self.kernel.state.lock().unwrap().limits.insert(page, pages);
    }

    pub fn set_available_mib(&self, mib: u64) {
        self.kernel.state.lock().unwrap().available_mib = mib;
    }

    pub fn set_boot(&self, boot: &str) {
        self.kernel.state.lock().unwrap().boot = boot.into();
    }

    /// From now on writes fail, or no longer.
    pub fn refuse_writes(&self, refusal: Option<io::ErrorKind>) {
        self.kernel.state.lock().unwrap().refusal = refusal;
    }

    /// Makes a file below the root, with whatever directories it needs.
    pub fn file(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What such a file holds.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.directory.path().join(path)).unwrap()
    }

    /// Every module that was unloaded or loaded, in order.
    pub fn module_calls(&self) -> Vec<String> {
        self.kernel.state.lock().unwrap().module_calls.clone()
    }

    /// From now on modules cannot be loaded, or again can.
    pub fn refuse_loading(&self, is_refused: bool) {
        self.kernel.state.lock().unwrap().is_loading_refused = is_refused;
    }

    /// From now on modules cannot be unloaded, or again can.
    pub fn refuse_unloading(&self, is_refused: bool) {
        self.kernel.state.lock().unwrap().is_unloading_refused = is_refused;
    }

    pub fn journal(&self) -> PathBuf {
        self.host().journal_path()
    }
}

impl Kernel for FakeKernel {
    fn read(&self, path: &Path) -> io::Result<String> {
        let state = self.state.lock().unwrap();
        if path.ends_with("boot_id") {
            return Ok(format!("{}\n", state.boot));
        }
        if path.ends_with("meminfo") {
            let kib = state.available_mib << 10;
            let other = "Buffers: 0 kB\nCached: 0 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\n\
                         SwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\nMapped: 0 kB\nSlab: 0 kB\nCommitted_AS: 0 kB\n\
                         VmallocTotal: 0 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\n";
            return Ok(format!("MemTotal: {kib} kB\nMemFree: {kib} kB\nMemAvailable: {kib} kB\n{other}"));
        }
        if !is_pool(path) {
            return fs::read_to_string(path);
        }
        let pool = state.pools[&page_of(path)?];
        let value = match path.file_name().unwrap().to_str().unwrap() {
            "nr_hugepages" => pool.total,
            "free_hugepages" => pool.free,
            "resv_hugepages" => pool.reserved,
            "surplus_hugepages" => pool.surplus,
            other => panic!("{other} is not read"),
        };
        Ok(format!("{value}\n"))
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        if let Some(kind) = state.refusal {
            return Err(kind.into());
        }
        if path.ends_with("compact_memory") {
            return write_word(path, text);
        }
        assert!(
            fs::read_to_string(self.journal_beside(path))?.lines().count() >= 2,
            "a knob is turned only after the intent is in the journal"
        );
        if !is_pool(path) {
            return write_word(path, text);
        }
        assert!(path.ends_with("nr_hugepages"));
        let page = page_of(path)?;
        let count: u64 = text.parse().unwrap();
        let limit = state.limits[&page];
        state.writes.push(count);
        let pool = state.pools.get_mut(&page).unwrap();
        let adopted = pool.surplus.min(count.saturating_sub(pool.persistent()));
        pool.surplus -= adopted;
        let fresh = count.min(limit.max(pool.persistent())).saturating_sub(pool.persistent());
        (pool.total, pool.free) = (pool.total + fresh, pool.free + fresh);
        let freed = pool.persistent().saturating_sub(count).min(pool.available());
        (pool.total, pool.free) = (pool.total - freed, pool.free - freed);
        pool.surplus += pool.persistent().saturating_sub(count);
        Ok(())
    }

    /// The module's directory becomes what `module.loaded` beside it says, with the parameters given.
    fn load(&self, module: &str, parameters: &[&str]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.module_calls.push(format!("load {module} {}", parameters.join(" ")));
        if state.is_loading_refused {
            return Err(io::Error::other("modprobe: no such module"));
        }
        let directory = self.modules.join(module);
        fs::rename(directory.with_extension("unloaded"), &directory)?;
        let values = parameters.iter().map(|p| p.split_once('=').unwrap());
        for (name, value) in values {
            fs::write(directory.join("parameters").join(name), format!("{value}\n"))?;
        }
        if parameters.contains(&"ept=N") {
            fs::write(directory.join("parameters/unrestricted_guest"), "N\n")?;
        }
        Ok(())
    }

    fn unload(&self, module: &str) -> io::Result<()> {
        let directory = self.modules.join(module);
        let mut state = self.state.lock().unwrap();
        state.module_calls.push(format!("unload {module}"));
        if state.is_unloading_refused {
            return Err(io::Error::other("the module has no way out"));
        }
        fs::rename(&directory, directory.with_extension("unloaded"))
    }
}

fn is_pool(path: &Path) -> bool {
    path.parent().and_then(Path::parent).is_some_and(|directory| directory.ends_with("kernel/mm/hugepages"))
}

/// As sysfs takes a word: one of several is put in brackets, a single one is replaced; another is refused.
fn write_word(path: &Path, word: &str) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    if !text.contains('[') {
        return fs::write(path, format!("{word}\n"));
    }
    let words: Vec<&str> = text.split_whitespace().map(|w| w.trim_matches(['[', ']'])).collect();
    if !words.contains(&word) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bracketed: Vec<String> = words.iter().map(|&w| if w == word { format!("[{w}]") } else { w.into() }).collect();
    fs::write(path, bracketed.join(" ") + "\n")
}

impl FakeKernel {
    fn journal_beside(&self, path: &Path) -> PathBuf {
        path.ancestors().find(|a| a.ends_with("sys")).unwrap().with_file_name("journal")
    }
}

fn page_of(path: &Path) -> io::Result<PageSize> {
    let directory = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    match directory {
        "hugepages-2048kB" => Ok(PageSize::Large),
        "hugepages-1048576kB" => Ok(PageSize::Giant),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}
