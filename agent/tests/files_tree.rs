mod client;

use client::agent::{lacks_root, mode};
use client::{start, start_with};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Makes a tree whose deepest path is far longer than the system's limit.
fn make_deep_tree(parent: &Path, depth: usize) {
    let name = "d".repeat(100);
    // Makes one short chain at a time and moves the previous one into it.
    let (top, stage) = (parent.join("deep"), parent.join("stage"));
    fs::create_dir(&top).unwrap();
    for _ in 0..depth / 20 {
        let chain = std::iter::repeat_n(name.as_str(), 20).collect::<Vec<_>>().join("/");
        fs::create_dir_all(stage.join(&chain)).unwrap();
        fs::write(stage.join(&chain).join("file"), "").unwrap();
        fs::rename(&top, stage.join(&chain).join("deeper")).unwrap();
        fs::rename(&stage, &top).unwrap();
    }
}

#[test]
fn makes_one_directory_or_all_missing_parents() {
    let (home, mut agent) = start("mkdir");
    assert_eq!(agent.call("file.mkdir", json!({ "path": "a" })), Ok(json!({ "created": true })));
    assert_eq!(agent.call("file.mkdir", json!({ "path": "a/" })), Ok(json!({ "created": false })));
    assert_eq!(agent.call("file.mkdir", json!({ "path": "b/c/d" })).unwrap_err().reason, "no_such_file");
    assert!(!home.join("b").exists());
    let answer = agent.call("file.mkdir", json!({ "path": "b/c/d", "parents": true, "mode": 0o1777 }));
    assert_eq!(answer, Ok(json!({ "created": true })));
    assert_eq!(mode(&home.join("b/c")), 0o755);
    assert_eq!(mode(&home.join("b/c/d")), 0o1777);
    fs::write(home.join("file"), "").unwrap();
    symlink("a", home.join("link")).unwrap();
    symlink("missing", home.join("dangling")).unwrap();
    assert_eq!(agent.call("file.mkdir", json!({ "path": "link" })), Ok(json!({ "created": false })));
    for path in ["file", "dangling"] {
        agent.assert_refuses("file.mkdir", json!({ "path": path }), "already_exists", "file_exists");
    }
    assert_eq!(agent.call("file.mkdir", json!({ "path": "/" })), Ok(json!({ "created": false })));
}

#[test]
fn moves_an_entry_and_replaces_another_only_with_overwrite() {
    let (home, mut agent) = start("move");
    fs::write(home.join("a"), "a").unwrap();
    fs::write(home.join("b"), "b").unwrap();
    agent.assert_refuses("file.move", json!({ "from": "a", "to": "b" }), "already_exists", "file_exists");
    assert_eq!(fs::read(home.join("b")).unwrap(), b"b");
    agent.call("file.move", json!({ "from": "a", "to": "b", "overwrite": true })).unwrap();
    assert_eq!(fs::read(home.join("b")).unwrap(), b"a");
    agent.call("file.move", json!({ "from": "b", "to": "c" })).unwrap();
    assert!(!home.join("b").exists());
    symlink("c", home.join("link")).unwrap();
    agent.call("file.move", json!({ "from": "link", "to": "moved-link" })).unwrap();
    assert!(fs::symlink_metadata(home.join("moved-link")).unwrap().is_symlink());
    fs::create_dir_all(home.join("dir/sub")).unwrap();
    agent.call("file.move", json!({ "from": "dir", "to": "moved" })).unwrap();
    assert!(home.join("moved/sub").is_dir());
    let cases = [
        (json!({ "from": "missing", "to": "x" }), "no_such_file"),
        (json!({ "from": "c", "to": "missing/x" }), "no_such_file"),
        (json!({ "from": "moved", "to": "moved/sub/x" }), "bad_path"),
        (json!({ "from": "c", "to": "moved", "overwrite": true }), "is_a_directory"),
        (json!({ "from": "moved/sub", "to": "c", "overwrite": true }), "not_a_directory"),
        (json!({ "from": "/", "to": "x" }), "bad_path"),
        (json!({ "from": "c", "to": "moved/.." }), "bad_path"),
    ];
    for (params, reason) in cases {
        assert_eq!(agent.call("file.move", params.clone()).unwrap_err().reason, reason, "{params}");
    }
}

#[test]
fn removes_files_and_empty_directories_and_trees_only_with_recursive() {
    let (home, mut agent) = start("remove");
    fs::write(home.join("file"), "").unwrap();
    fs::create_dir_all(home.join("tree/a/b")).unwrap();
    fs::create_dir(home.join("empty")).unwrap();
    fs::create_dir(home.join("kept")).unwrap();
    fs::write(home.join("kept/file"), "").unwrap();
    fs::write(home.join("tree/a/b/file"), "").unwrap();
    symlink("../kept", home.join("tree/link")).unwrap();
    symlink("kept", home.join("link")).unwrap();
    for path in ["file", "empty"] {
        agent.call("file.remove", json!({ "path": path })).unwrap();
        assert!(!home.join(path).exists());
    }
    agent.assert_refuses("file.remove", json!({ "path": "tree" }), "failed_precondition", "directory_not_empty");
    agent.call("file.remove", json!({ "path": "tree", "recursive": true })).unwrap();
    assert!(!home.join("tree").exists());
    agent.call("file.remove", json!({ "path": "link", "recursive": true })).unwrap();
    assert!(home.join("kept/file").exists());
    agent.assert_refuses("file.remove", json!({ "path": "tree" }), "not_found", "no_such_file");
    agent.call("file.remove", json!({ "path": "tree", "missing_ok": true })).unwrap();
}

#[test]
fn refuses_to_remove_the_root_directory() {
    let (_home, mut agent) = start("remove-root");
    for path in ["/", "//", "/.", "/..", "/tmp/.."] {
        // Not recursive, so that a bug does no harm.
        agent.assert_refuses("file.remove", json!({ "path": path }), "invalid_argument", "bad_path");
    }
}

#[test]
fn lists_and_removes_a_tree_deeper_than_the_longest_path() {
    let (home, mut agent) = start("deep");
    make_deep_tree(&home, 2_000);
    let (bytes, answer) = agent.collect("file.list", json!({ "path": "deep", "depth": 0, "window": 1 << 20 }));
    // The list has exactly the paths that a call can name.
    let longest = bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
    assert!((4_000..5_000).contains(&longest), "{longest}");
    assert!((40..60).contains(&answer.unwrap()["count"].as_u64().unwrap()));
    agent.call("file.chmod", json!({ "path": "deep", "mode": 0o711, "recursive": true })).unwrap();
    agent.call("file.remove", json!({ "path": "deep", "recursive": true })).unwrap();
    assert!(!home.join("deep").exists());
    assert!(agent.peak_memory_kib() < 16 * 1024, "{} KiB", agent.peak_memory_kib());
}

#[test]
fn answers_other_calls_while_it_removes_a_large_tree() {
    let (home, mut agent) = start("remove-many");
    for dir in 0..20 {
        let dir = home.join(format!("tree/{dir}"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..500 {
            fs::File::create(dir.join(file.to_string())).unwrap();
        }
    }
    let removal = agent.begin("file.remove", json!({ "path": "tree", "recursive": true }));
    let ping = agent.begin("ping", json!({}));
    assert_eq!(agent.frame().message["id"], json!(ping), "the agent answers the ping first");
    assert_eq!(agent.answer(removal), Ok(json!({})));
    assert!(!home.join("tree").exists());
}

#[test]
fn changes_the_mode_of_an_entry_or_tree_but_not_through_symlinks() {
    let (home, mut agent) = start("chmod");
    fs::create_dir_all(home.join("tree/sub")).unwrap();
    for file in ["outside", "tree/file", "tree/sub/file"] {
        fs::write(home.join(file), "").unwrap();
        fs::set_permissions(home.join(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    symlink("../outside", home.join("tree/link")).unwrap();
    agent.call("file.chmod", json!({ "path": "outside", "mode": 0o600 })).unwrap();
    assert_eq!(mode(&home.join("outside")), 0o600);
    agent.call("file.chmod", json!({ "path": "tree", "mode": 0o700 })).unwrap();
    assert_eq!((mode(&home.join("tree")), mode(&home.join("tree/file"))), (0o700, 0o644));
    agent.call("file.chmod", json!({ "path": "tree", "mode": 0o751, "recursive": true })).unwrap();
    for path in ["tree", "tree/file", "tree/sub", "tree/sub/file"] {
        assert_eq!(mode(&home.join(path)), 0o751, "{path}");
    }
    assert_eq!(mode(&home.join("outside")), 0o600);
    assert_eq!(agent.call("file.chmod", json!({ "path": "missing", "mode": 0 })).unwrap_err().reason, "no_such_file");
    agent.assert_refuses("file.chmod", json!({ "path": "tree", "mode": 0o10000 }), "invalid_argument", "bad_params");
}

#[test]
fn creates_files_for_the_default_user() {
    if lacks_root("acting for another user needs root") {
        return;
    }
    let (home, mut agent) = start_with("default-user", &["--default-user", "nobody"]);
    let nobody = fs::read_to_string("/etc/passwd").unwrap();
    let nobody = nobody.lines().find(|line| line.starts_with("nobody:")).expect("a user nobody").to_string();
    let expected: (u32, u32) = {
        let fields: Vec<&str> = nobody.split(':').collect();
        (fields[2].parse().unwrap(), fields[3].parse().unwrap())
    };
    let owner = |path: &str| fs::metadata(home.join(path)).map(|stat| (stat.uid(), stat.gid())).unwrap();
    let path = |name: &str| home.join(name).to_str().unwrap().to_string();
    agent.write_file(json!({ "path": path("a/b/file") }), b"x").unwrap();
    agent.call("file.mkdir", json!({ "path": path("c/d"), "parents": true })).unwrap();
    for made in ["a", "a/b", "a/b/file", "c", "c/d"] {
        assert_eq!(owner(made), expected, "{made}");
    }
    agent.call("file.mkdir", json!({ "path": path("e"), "owner": "0:0" })).unwrap();
    assert_eq!(owner("e"), (0, 0));
}
