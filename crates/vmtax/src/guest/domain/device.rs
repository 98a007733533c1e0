//! A domain's devices: its network card and its disks.

use roxmltree::Node;

use super::{
    DomainError,
    element::{Source, child},
};
use crate::guest::{
    Accel,
    machine::{Access, Disk, Net, Vhost},
};

/// Devices that have an effect on memory or time, and are left out.
const LEFT_OUT: [&str; 9] =
    ["hostdev", "memory", "memballoon", "filesystem", "shmem", "iommu", "tpm", "vsock", "redirdev"];

fn devices<'n, 'd>(root: Node<'n, 'd>, kind: &str) -> Vec<Node<'n, 'd>> {
    let all = child(root, "devices").into_iter().flat_map(|devices| devices.children());
    all.filter(|node| node.is_element() && node.tag_name().name() == kind).collect()
}

/// The first network card that this machine can have.
pub fn net(source: &Source, root: Node, accel: Accel, notes: &mut Vec<String>) -> Result<Option<Net>, DomainError> {
    let mut card = None;
    for interface in devices(root, "interface") {
        let kind = source.attribute(interface, "type")?;
        let model = child(interface, "model").and_then(|model| model.attribute("type")).unwrap_or("rtl8139");
        if !model.starts_with("virtio") {
            notes.push(format!("Its network card of model {model} is left out: only virtio's can be had."));
        } else if card.is_some() {
            notes.push("It has more network cards; here it has the first.".to_owned());
        } else {
            card = connected(source, interface, kind, accel, notes)?;
        }
    }
    Ok(card)
}

fn connected(
    source: &Source,
    interface: Node,
    kind: &str,
    accel: Accel,
    notes: &mut Vec<String>,
) -> Result<Option<Net>, DomainError> {
    match kind {
        "user" => Ok(Some(Net::User)),
        "network" | "bridge" | "ethernet" => {
            notes.push(format!("Its network card ({kind}) has a tap of its own here, connected to nothing."));
            let vhost = vhost(source, interface, accel, notes)?;
            Ok(Some(Net::Tap { name: None, vhost }))
        }
        other => {
            notes.push(format!("Its network card of type {other} is left out."));
            Ok(None)
        }
    }
}

fn vhost(source: &Source, interface: Node, accel: Accel, notes: &mut Vec<String>) -> Result<Vhost, DomainError> {
    let driver = child(interface, "driver");
    if driver.and_then(|driver| driver.attribute("queues")).is_some() {
        notes.push("Its network card has several queues; here it has one.".to_owned());
    }
    match (driver.and_then(|driver| Some((driver, driver.attribute("name")?))), accel) {
        (Some((_, "vhost")), _) => Ok(Vhost::On),
        (Some((_, "qemu")), _) => Ok(Vhost::Off),
        (Some((driver, other)), _) => Err(source.wrong(
            driver,
            format!("no driver of a network card is called {other}"),
            "name='vhost' or 'qemu'",
        )),
        // What libvirt does of its own accord.
        (None, Accel::Kvm) => {
            notes.push("libvirt has its packets moved by vhost where that can be; here they must be.".to_owned());
            Ok(Vhost::On)
        }
        (None, Accel::Tcg) => Ok(Vhost::Off),
    }
}

/// Its disks in raw format, for reading only.
pub fn disks(root: Node, notes: &mut Vec<String>) -> Vec<Disk> {
    let mut disks = Vec::new();
    for disk in devices(root, "disk") {
        let attribute = |element: &str, name: &str| child(disk, element).and_then(|node| node.attribute(name));
        let name = attribute("target", "dev").unwrap_or("unnamed");
        let kind = disk.attribute("device").unwrap_or("disk");
        let format = attribute("driver", "type").unwrap_or("raw");
        let file = attribute("source", "file").or_else(|| attribute("source", "dev"));
        match (kind, format, file) {
            ("disk", "raw", Some(file)) => {
                disks.push(Disk { file: file.into(), access: Access::ReadOnly });
                if attribute("target", "bus").is_some_and(|bus| bus != "virtio") {
                    notes.push(format!("Its disk {name} is virtio's here."));
                }
            }
            ("disk", "raw", None) => notes.push(format!("Its disk {name} is left out: it is no file of this host.")),
            ("disk", format, _) => notes.push(format!("Its disk {name} is left out: {format} is not read here.")),
            (kind, ..) => notes.push(format!("Its {kind} {name} is left out.")),
        }
    }
    if !disks.is_empty() {
        notes.push("Its disks are read, and never written; the domain itself must be shut down.".to_owned());
    }
    disks
}

/// Names of the devices that nothing here stands for.
pub fn left_out(root: Node) -> Vec<String> {
    let is_there = |kind: &&str| devices(root, kind).iter().any(|node| node.attribute("model") != Some("none"));
    LEFT_OUT.into_iter().filter(is_there).map(|kind| format!("devices/{kind}")).collect()
}
