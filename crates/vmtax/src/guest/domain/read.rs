//! From the text of a description to a machine.

use std::str::FromStr;

use roxmltree::{Document, Node};
use vmtax_core::{
    setting::Backing,
    units::{Bytes, MIB, PageSize},
};

use super::{
    Domain, DomainError, device,
    element::{Source, child, text},
};
use crate::guest::{Accel, Machine, machine::Populated};

/// Elements of a domain that have an effect on memory or time, and none here.
const LEFT_OUT: [&str; 9] = [
    "numatune",
    "iothreads",
    "memtune",
    "blkiotune",
    "resource",
    "launchSecurity",
    "maxMemory",
    "qemu:commandline",
    "perf",
];

/// A domain by libvirt's description of it; `file` is where that came from, for messages.
pub fn read(file: &str, xml: &str) -> Result<Domain, DomainError> {
    let document = Document::parse(xml).map_err(|e| DomainError::Element {
        file: file.to_owned(),
        line: e.pos().row,
        element: "domain".to_owned(),
        why: format!("it is no XML: {e}"),
        remedy: "what virsh dumpxml writes",
    })?;
    let source = Source { file, document: &document };
    let root = document.root_element();
    if !root.has_tag_name("domain") {
        return Err(source.wrong(root, "it describes no domain", "what virsh dumpxml writes"));
    }
    let mut notes = Vec::new();
    let accel = accel(&source, root)?;
    let (board, qemu) = (board(&source, root, &mut notes)?, child(root, "devices").and_then(|d| text(d, "emulator")));
    let (backing, populated) = memory_backing(&source, root, &mut notes)?;
    let memory = memory(&source, root, backing, &mut notes)?;
    let vcpus = vcpus(&source, root)?;
    let machine = Machine {
        board,
        cpu: cpu(&source, root, accel)?,
        vcpus,
        memory,
        backing,
        populated,
        net: device::net(&source, root, accel, &mut notes)?,
        disks: device::disks(root, &mut notes),
        ..Machine::new(accel)
    };
    let machine = match qemu {
        Some(qemu) => Machine { qemu: qemu.into(), ..machine },
        None => machine,
    };
    let pin = pins(&source, root, vcpus, &mut notes)?;
    left_out(root, &mut notes);
    let name = text(root, "name").unwrap_or("unnamed").to_owned();
    Ok(Domain { name, machine, pin, notes })
}

fn accel(source: &Source, root: Node) -> Result<Accel, DomainError> {
    match root.attribute("type") {
        Some("kvm") => Ok(Accel::Kvm),
        Some("qemu") => Ok(Accel::Tcg),
        other => {
            let why = format!("its type is {}, which QEMU does not run", other.unwrap_or("missing"));
            Err(source.wrong(root, why, "a domain of type kvm or qemu"))
        }
    }
}

fn board(source: &Source, root: Node, notes: &mut Vec<String>) -> Result<String, DomainError> {
    let os = child(root, "os");
    let Some(kind) = os.and_then(|os| child(os, "type")) else {
        return Err(source.wrong(os.unwrap_or(root), "it has no os/type", "what virsh dumpxml writes"));
    };
    if kind.text().map(str::trim) != Some("hvm") || kind.attribute("arch").is_some_and(|arch| arch != "x86_64") {
        return Err(source.wrong(kind, "it is no x86-64 machine", "a domain of <type arch='x86_64'>hvm</type>"));
    }
    if os.is_some_and(|os| child(os, "loader").is_some() || os.attribute("firmware").is_some()) {
        notes.push("Its firmware is not used: the kernel is started directly.".to_owned());
    }
    source.word(kind, kind.attribute("machine").unwrap_or("q35"))
}

fn memory_backing(source: &Source, root: Node, notes: &mut Vec<String>) -> Result<(Backing, Populated), DomainError> {
    let part = |name: &str| child(root, "memoryBacking").and_then(|backing| child(backing, name));
    if part("nosharepages").is_none() {
        notes.push("KSM may merge its memory (no nosharepages); here it never does.".to_owned());
    }
    if let Some(kind) = part("source").and_then(|from| from.attribute("type")).filter(|kind| *kind != "anonymous") {
        notes.push(format!("Its memory is of type {kind}; here it is anonymous, or from a pool."));
    }
    if part("access").and_then(|access| access.attribute("mode")) == Some("shared") {
        notes.push("Its memory is shared with other programs; here it is not.".to_owned());
    }
    let Some(huge) = part("hugepages") else {
        let mode = part("allocation").and_then(|allocation| allocation.attribute("mode"));
        if mode != Some("immediate") && part("locked").is_none() {
            notes.push("Its memory comes as it is touched; here it is there before the guest starts.".to_owned());
        }
        return Ok((Backing::Thp, Populated::Before));
    };
    let pages: Vec<Node> = huge.children().filter(|node| node.has_tag_name("page")).collect();
    let Some(first) = pages.first() else {
        notes.push("It has huge pages of its host's default size; here they are of 2 MiB.".to_owned());
        return Ok((Backing::Huge2m, Populated::Before));
    };
    if pages.len() > 1 || first.attribute("nodeset").is_some() {
        notes.push("Its huge pages differ by NUMA node; here the first size is that of all memory.".to_owned());
    }
    let size = source.attribute(*first, "size")?;
    let bytes = source.bytes(*first, size)?;
    match PageSize::ALL.into_iter().find(|page| page.bytes() == bytes.0) {
        Some(PageSize::Large) => Ok((Backing::Huge2m, Populated::Before)),
        Some(PageSize::Giant) => Ok((Backing::Huge1g, Populated::Before)),
        Some(PageSize::Small) => Ok((Backing::Small, Populated::Before)),
        None => Err(source.wrong(*first, format!("no page is of {bytes}"), "pages of 2 MiB or 1 GiB")),
    }
}

fn memory(source: &Source, root: Node, backing: Backing, notes: &mut Vec<String>) -> Result<Bytes, DomainError> {
    let Some(all) = child(root, "memory") else {
        return Err(source.wrong(root, "it has no memory", "what virsh dumpxml writes"));
    };
    let bytes = |node: Node| source.bytes(node, node.text().unwrap_or_default());
    let most = bytes(all)?;
    let now = child(root, "currentMemory").map(bytes).transpose()?.filter(|now| *now < most);
    if let Some(now) = now {
        notes.push(format!("Of its {most} a balloon takes all but {now}; here that is all there is."));
    }
    let memory = now.unwrap_or(most);
    let whole = memory.0.checked_next_multiple_of(backing.page().bytes().max(MIB)).map(Bytes);
    let whole = whole.ok_or_else(|| source.wrong(all, "no host has so much", "less memory"))?;
    if whole != memory {
        notes.push(format!("Its {memory} are no whole pages; here it has {whole}."));
    }
    Ok(whole)
}

fn vcpus(source: &Source, root: Node) -> Result<u32, DomainError> {
    let Some(vcpu) = child(root, "vcpu") else { return Ok(1) };
    let number = vcpu.attribute("current").or_else(|| vcpu.text()).unwrap_or_default();
    source.number(vcpu, number)
}

/// QEMU's words for the processor; none for the fullest that the accelerator offers.
fn cpu(source: &Source, root: Node, accel: Accel) -> Result<Option<String>, DomainError> {
    // What QEMU makes of a machine of which nobody says more.
    let Some(cpu) = child(root, "cpu") else { return Ok(Some("qemu64".to_owned())) };
    let fullest = match accel {
        Accel::Kvm => "host",
        Accel::Tcg => "max",
    };
    let model = match cpu.attribute("mode").unwrap_or("custom") {
        "host-passthrough" | "host-model" => fullest.to_owned(),
        "maximum" => "max".to_owned(),
        "custom" => source.word(cpu, text(cpu, "model").unwrap_or("qemu64"))?,
        other => return Err(source.wrong(cpu, format!("no mode is called {other}"), "what virsh dumpxml writes")),
    };
    let mut words = model;
    for feature in cpu.children().filter(|node| node.has_tag_name("feature")) {
        let sign = match feature.attribute("policy").unwrap_or("require") {
            "disable" | "forbid" => '-',
            _ => '+',
        };
        words += &format!(",{sign}{}", source.word(feature, source.attribute(feature, "name")?)?);
    }
    Ok(Some(words).filter(|words| words != fullest))
}

/// The CPU of each vCPU; empty unless each has one.
fn pins(source: &Source, root: Node, vcpus: u32, notes: &mut Vec<String>) -> Result<Vec<usize>, DomainError> {
    let tune = child(root, "cputune");
    let pins: Vec<Node> =
        tune.into_iter().flat_map(|tune| tune.children()).filter(|node| node.has_tag_name("vcpupin")).collect();
    let mut places = Vec::new();
    for vcpu in 0..vcpus {
        let number = vcpu.to_string();
        let Some(pin) = pins.iter().find(|pin| pin.attribute("vcpu") == Some(&number)) else { continue };
        match usize::from_str(source.attribute(*pin, "cpuset")?) {
            Ok(cpu) => places.push(cpu),
            Err(_) => notes.push(format!("Its vCPU {vcpu} has several CPUs to run on; here none is bound.")),
        }
    }
    if tune.is_some_and(|tune| tune.children().any(|node| node.is_element() && !node.has_tag_name("vcpupin"))) {
        notes.push("Of cputune only vcpupin is taken over.".to_owned());
    }
    if child(root, "vcpu").and_then(|vcpu| vcpu.attribute("cpuset")).is_some() && places.is_empty() {
        notes.push("Its vCPUs keep to a set of CPUs; here they are free to move.".to_owned());
    }
    if places.len() == vcpus as usize {
        return Ok(places);
    }
    if !places.is_empty() {
        notes.push("Not each of its vCPUs is bound to one CPU; here none is.".to_owned());
    }
    Ok(Vec::new())
}

fn left_out(root: Node, notes: &mut Vec<String>) {
    let mut names: Vec<&str> = LEFT_OUT
        .into_iter()
        .filter(|name| child(root, name.trim_start_matches("qemu:")).is_some_and(|node| node.is_element()))
        .collect();
    let cpu = |name: &str| child(root, "cpu").is_some_and(|cpu| child(cpu, name).is_some());
    names
        .extend([("numa", "cpu/numa"), ("topology", "cpu/topology")].iter().filter(|(at, _)| cpu(at)).map(|(_, n)| *n));
    if child(root, "features").is_some_and(|features| child(features, "hyperv").is_some()) {
        names.push("features/hyperv");
    }
    let devices = device::left_out(root);
    names.extend(devices.iter().map(String::as_str));
    if !names.is_empty() {
        notes.push(format!("Not taken over: {}.", names.join(", ")));
    }
}

#[cfg(test)]
mod tests;
