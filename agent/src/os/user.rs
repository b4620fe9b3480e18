//! Users of the sandbox, from its current /etc/passwd and /etc/group: the code inside may add users at any time.

use super::dir_changes::DirChanges;
use super::small_file::read_small_file;
use crate::args::Args;
use crate::error::{AgentError, Result};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name in /etc/passwd, or the uid in digits.
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups, without `gid`.
    pub groups: Vec<u32>,
    /// None for a uid that /etc/passwd does not list.
    pub home: Option<PathBuf>,
    pub shell: Option<PathBuf>,
}

/// Finds a user by name, "uid" or "uid:gid".
pub fn find(text: &str) -> Result<User> {
    find_in(&Tables::current(), text)
}

/// The agent's own user and group, which never change.
pub fn own_ids() -> (u32, u32) {
    static IDS: OnceLock<(u32, u32)> = OnceLock::new();
    // SAFETY: these calls only read the process's own ids.
    *IDS.get_or_init(|| unsafe { (libc::geteuid(), libc::getegid()) })
}

/// The agent's own supplementary groups, which never change either.
pub fn own_groups() -> &'static [u32] {
    static GROUPS: OnceLock<Vec<u32>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        // SAFETY: the first call only counts, and the second writes at most as many groups as fit.
        unsafe {
            let mut groups = vec![0; libc::getgroups(0, std::ptr::null_mut()).max(0) as usize];
            let count = libc::getgroups(groups.len() as i32, groups.as_mut_ptr());
            groups.truncate(count.max(0) as usize);
            groups
        }
    })
}

/// The user of a call that names none.
pub fn default_user(args: &Args) -> User {
    let tables = Tables::current();
    let (uid, gid) = own_ids();
    if let Some(named) = args.default_user.as_deref().and_then(|text| find_in(&tables, text).ok()) {
        // Only root can act for another user.
        if uid == 0 || uid == named.uid {
            return named;
        }
    }
    let mut own = tables.find(|user| user.uid == uid).unwrap_or_else(|| unlisted(uid, gid));
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
        own.home = Some(home);
    }
    own
}

fn find_in(tables: &Tables, text: &str) -> Result<User> {
    let unknown = || {
        AgentError::invalid("unknown_user", format!("user {text:?} not found in this sandbox"))
            .hint("give a name from the sandbox's /etc/passwd, \"uid\" or \"uid:gid\"")
    };
    if let Some(user) = tables.find(|user| user.name == text) {
        return Ok(user);
    }
    let (uid, gid) = match text.split_once(':') {
        Some((uid, gid)) => (number(uid).ok_or_else(unknown)?, Some(number(gid).ok_or_else(unknown)?)),
        None => (number(text).ok_or_else(unknown)?, None),
    };
    let listed = tables.find(|user| user.uid == uid).unwrap_or_else(|| unlisted(uid, gid.unwrap_or(uid)));
    Ok(match gid {
        // A caller that names a group wants only that group.
        Some(gid) => User { gid, groups: Vec::new(), ..listed },
        None => listed,
    })
}

fn unlisted(uid: u32, gid: u32) -> User {
    User { name: uid.to_string(), uid, gid, groups: Vec::new(), home: None, shell: None }
}

/// Digits only: no sign, no space. The kernel reserves the largest value to mean "unchanged".
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != u32::MAX)
}

struct Tables {
    passwd: String,
    group: String,
}

thread_local! {
    /// The tables read last, valid until something in /etc changes.
    static KEPT: RefCell<Option<(DirChanges, Rc<Tables>)>> = const { RefCell::new(None) };
}

/// Reads the tables in advance, while no caller waits: the next process needs them.
pub fn keep_tables() {
    if KEPT.with_borrow(Option::is_some) || ![PASSWD, GROUP].iter().all(|path| is_plain_file(path)) {
        return;
    }
    // Watch first, so that no change is missed.
    let kept = DirChanges::watch(c"/etc").ok().map(|changes| (changes, Rc::new(Tables::read())));
    KEPT.set(kept);
}

/// The watch would miss changes to the target of a symlink.
fn is_plain_file(path: &str) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

impl Tables {
    fn current() -> Rc<Self> {
        let kept = KEPT.take().filter(|(changes, _)| !changes.any());
        let tables = kept.as_ref().map_or_else(|| Rc::new(Self::read()), |(_, tables)| Rc::clone(tables));
        KEPT.set(kept);
        tables
    }

    /// A missing or unreadable table counts as empty: a sandbox without users still has uids.
    fn read() -> Self {
        let [passwd, group] = [PASSWD, GROUP].map(|path| read_small_file(path).unwrap_or_default());
        Self { passwd, group }
    }

    fn find(&self, is_wanted: impl FnMut(&User) -> bool) -> Option<User> {
        self.users().find(is_wanted).map(|user| self.with_groups(user))
    }

    fn users(&self) -> impl Iterator<Item = User> + '_ {
        self.passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, _, home, shell] = fields[..] else { return None };
            let absolute = |path: &str| path.starts_with('/').then(|| PathBuf::from(path));
            Some(User {
                name: Some(name).filter(|name| !name.is_empty())?.to_string(),
                uid: number(uid)?,
                gid: number(gid)?,
                groups: Vec::new(),
                home: absolute(home),
                shell: absolute(shell),
            })
        })
    }

    fn with_groups(&self, mut user: User) -> User {
        user.groups = self
            .group
            .lines()
            .filter_map(|line| {
                let fields: Vec<&str> = line.split(':').collect();
                let [_, _, gid, members] = fields[..] else { return None };
                number(gid).filter(|gid| *gid != user.gid && members.split(',').any(|member| member == user.name))
            })
            .collect();
        user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        Tables {
            passwd: "root:x:0:0:root:/root:/bin/bash\nbroken line\nuser:x:1000:1001:,,,:/home/user:/bin/sh\n".into(),
            group: "root:x:0:\naudio:x:29:user,root\nuser:x:1001:user\nsudo:x:27:users\n".into(),
        }
    }

    #[test]
    fn finds_ids_home_shell_and_supplementary_groups_by_name() {
        let user = find_in(&tables(), "user").unwrap();
        assert_eq!((user.uid, user.gid, user.groups), (1000, 1001, vec![29]));
        assert_eq!((user.home, user.shell), (Some("/home/user".into()), Some("/bin/sh".into())));
    }

    #[test]
    fn finds_the_same_user_by_uid_as_by_name() {
        assert_eq!(find_in(&tables(), "1000").unwrap(), find_in(&tables(), "user").unwrap());
    }

    #[test]
    fn gives_a_uid_with_a_gid_only_that_group() {
        let user = find_in(&tables(), "1000:5").unwrap();
        assert_eq!((user.name.as_str(), user.gid, user.groups), ("user", 5, vec![]));
    }

    #[test]
    fn accepts_an_unlisted_uid_without_a_home() {
        let user = find_in(&tables(), "4242").unwrap();
        assert_eq!((user.name.as_str(), user.uid, user.gid, user.home), ("4242", 4242, 4242, None));
    }

    #[test]
    fn refuses_text_that_is_neither_a_known_name_nor_ids() {
        for text in ["", "nobody-here", "-1", "+1", "1000:", ":5", "1000:x", "4294967295", "99999999999"] {
            let error = find_in(&tables(), text).unwrap_err();
            assert_eq!(error.reason, "unknown_user", "{text:?}");
        }
    }
}
