//! How fragmented free memory is: `/proc/buddyinfo`, and the kernel's index of external fragmentation.
//!
//! ```text
//! Node 0, zone   Normal   9070   1945    499    136     99     74     27     15      4     38    524
//!                         free blocks of 2^0 pages, 2^1, …                                    2^9 = 2 MiB, 2^10
//! ```
//!
//! The index says of an order why an allocation of it would fail: 0 for want of memory, 1 because of fragmentation, and −1
//! that it would not fail. It comes from debugfs where that can be read (root, and mounted), else it is computed from
//! buddyinfo by the kernel's formula (`__fragmentation_index`, mm/vmstat.c, 6.18); [`Source`] says which.
//!
//! A moment's picture: pages on the CPUs' own lists are in neither.

use serde::Serialize;
use vmtax_core::units::PageSize;

use crate::knob::Host;

/// Free memory of one zone, as blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its NUMA node.
    pub node: u32,
    /// `DMA32`, `Normal`, …
    pub name: String,
    /// Free blocks of 2^order pages, by order.
    pub blocks: Vec<u64>,
}

/// A zone as it looks to an allocation of one order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZoneState {
    /// Its NUMA node.
    pub node: u32,
    /// Its name.
    pub zone: String,
    /// Free pages of 4 KiB.
    pub free_pages: u64,
    /// Those in blocks of the order or larger.
    pub suitable_pages: u64,
    /// The index of external fragmentation: −1, or 0 to 1.
    pub index: f64,
}

/// All zones at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragmentation {
    /// The order asked about: 9 for 2 MiB; for 1 GiB the largest the allocator has.
    pub order: usize,
    /// Where the indices come from.
    pub source: Source,
    /// The zones that have free memory, in the kernel's order.
    pub zones: Vec<ZoneState>,
}

/// Where an index comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `/sys/kernel/debug/extfrag/extfrag_index`.
    Kernel,
    /// Computed from `/proc/buddyinfo`.
    Computed,
}

impl Zone {
    /// Free pages.
    pub fn free_pages(&self) -> u64 {
        self.blocks.iter().enumerate().map(|(order, blocks)| blocks << order).sum()
    }

    /// Free pages in blocks of `order` or larger.
    pub fn suitable_pages(&self, order: usize) -> u64 {
        self.blocks.iter().enumerate().skip(order).map(|(order, blocks)| blocks << order).sum()
    }

    /// The kernel's index, in its integers of a thousandth.
    pub fn index(&self, order: usize) -> f64 {
        let blocks: u64 = self.blocks.iter().sum();
        if blocks == 0 {
            return 0.0;
        }
        if self.suitable_pages(order) > 0 {
            return -1.0;
        }
        let lacking = (self.free_pages() * 1000) >> order;
        (1000 - ((1000 + lacking) / blocks) as i64) as f64 / 1000.0
    }
}

impl Fragmentation {
    /// How free memory of `host` looks to an allocation of `page`; none where buddyinfo cannot be read.
    pub fn read(host: &Host, page: PageSize) -> Option<Fragmentation> {
        let zones = parse(&host.kernel.read(&host.proc.join("buddyinfo")).ok()?);
        let largest = zones.iter().map(|zone| zone.blocks.len()).max()?.checked_sub(1)?;
        let order = order(page).min(largest);
        let indices = host.kernel.read(&host.sys.join("kernel/debug/extfrag/extfrag_index")).ok();
        let kernel = |zone: &Zone| parse_index(indices.as_deref()?, zone, order);
        let is_kernels = zones.iter().all(|zone| kernel(zone).is_some());
        let state = |zone: &Zone| ZoneState {
            node: zone.node,
            zone: zone.name.clone(),
            free_pages: zone.free_pages(),
            suitable_pages: zone.suitable_pages(order),
            index: kernel(zone).filter(|_| is_kernels).unwrap_or_else(|| zone.index(order)),
        };
        let source = if is_kernels { Source::Kernel } else { Source::Computed };
        Some(Fragmentation { order, source, zones: zones.iter().map(state).collect() })
    }

    /// Free pages of all zones.
    pub fn free_pages(&self) -> u64 {
        self.zones.iter().map(|zone| zone.free_pages).sum()
    }

    /// Share of free memory in blocks too small for the order: 0 is none of it.
    pub fn unusable(&self) -> f64 {
        let suitable: u64 = self.zones.iter().map(|zone| zone.suitable_pages).sum();
        match self.free_pages() {
            0 => 0.0,
            free => 1.0 - suitable as f64 / free as f64,
        }
    }
}

const fn order(page: PageSize) -> usize {
    (page.bytes() / PageSize::Small.bytes()).trailing_zeros() as usize
}

/// The zones of a buddyinfo.
pub fn parse(buddyinfo: &str) -> Vec<Zone> {
    buddyinfo.lines().filter_map(parse_zone).collect()
}

fn parse_zone(line: &str) -> Option<Zone> {
    let (node, name, values) = fields(line)?;
    let blocks = values.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    Some(Zone { node, name: name.to_owned(), blocks })
}

/// `zone`'s index for `order` in the text of debugfs.
fn parse_index(text: &str, zone: &Zone, order: usize) -> Option<f64> {
    let lines = text.lines().filter_map(fields);
    let mut ours = lines.filter(|(node, name, _)| (*node, *name) == (zone.node, zone.name.as_str()));
    ours.next()?.2.nth(order)?.parse().ok()
}

/// `Node 0, zone   Normal   9070 …`
fn fields(line: &str) -> Option<(u32, &str, impl Iterator<Item = &str>)> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone")?;
    let mut words = rest.split_whitespace();
    Some((node.trim().parse().ok()?, words.next()?, words))
}

#[cfg(test)]
mod tests;
