use super::*;

#[test]
fn sources_of_debian_are_told_from_others() {
    let target = |origin: &str, entry: &str| format!("Origin: {origin}\nRelease: r\nSourcesentry: {entry}\n");
    let targets =
        [target("Debian", "/b:1"), target("Docker", "/c:1"), target("Debian", "/b:2"), target("Debian", "/a:7")];
    assert_eq!(debian(&targets.join("\n")), Some(("r", vec!["/a", "/b"])));
    assert_eq!(debian(&target("Docker", "/c:1")), None);
}

#[test]
fn only_what_is_installed_is_listed() {
    let stanza = |name: &str, status: &str| format!("Package: {name}\nStatus: {status}\nVersion: 1.{name}\n");
    let status = [
        stanza("b", "install ok installed"),
        stanza("c", "deinstall ok config-files"),
        stanza("a", "install ok installed"),
    ];
    assert_eq!(packages_of(&status.join("\n")), ["a 1.a", "b 1.b"]);
}

#[test]
fn every_image_of_packages_has_what_boots_guests() {
    let Origin::Packages(packages) = Origin::packages(&["sysbench".to_owned(), "apache2".to_owned()]) else {
        panic!("these are packages")
    };
    assert_eq!(packages, ["apache2", "qemu-system-x86", "rt-tests", "sysbench"]);
}

#[test]
fn what_is_given_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, contents: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    };
    assert_eq!(Origin::at(directory.path()).unwrap(), Origin::Tree(directory.path().to_owned()));
    let archive = file("root.tar", &[0; 1024]);
    assert_eq!(Origin::at(&archive).unwrap(), Origin::Archive(archive));
    let error = Origin::at(&file("disk.qcow2", b"QFI\xfb\0\0\0\x03")).unwrap_err();
    assert!(error.to_string().ends_with("disk.qcow2: disk images are not supported yet"), "{error}");
    assert!(error.remedy().unwrap().contains("qemu-img convert"));
}

#[test]
fn a_tree_is_made_once_and_has_its_name() {
    if let Err(why) = tool::run(Command::new("mksquashfs").arg("-version")) {
        return println!("skipped: {why}");
    }
    let (tree, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(tree.path().join("var/lib/dpkg")).unwrap();
    let status = "Package: a\nStatus: install ok installed\nVersion: 1\n";
    fs::write(tree.path().join("var/lib/dpkg/status"), status).unwrap();
    let origin = Origin::at(tree.path()).unwrap();
    let root = build(&origin, cache.path(), "mine").unwrap();
    assert_eq!(root.packages().unwrap(), ["a 1"]);
    assert_eq!(build(&origin, cache.path(), "mine").unwrap(), root);
    assert_eq!(Root::find(&cache.path().join("mine")).unwrap().disk().canonicalize().unwrap(), root.disk());
    let kept = fs::read_dir(cache.path()).unwrap().count();
    assert_eq!(kept, 3, "the image, its name, and the lock");
}
