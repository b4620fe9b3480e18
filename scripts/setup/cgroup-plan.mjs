/** The controllers that the limits of a sandbox need. */
const NEEDED = ["cpu", "memory", "pids"];
/** gVisor refuses a version 2 host that lacks one of these, although no limit uses cpuset and io. */
const NEEDED_V2 = ["cpuset", "cpu", "io", "memory", "pids"];
const ROOT = "/sys/fs/cgroup";

/**
 * @typedef {object} CgroupView the cgroups of a host
 * @property {string} mounts the text of /proc/self/mounts
 * @property {string} controllers the text of /proc/cgroups
 * @property {(path: string) => string} read the text of a file, empty when the file does not exist
 * @property {(path: string) => boolean} isWritable
 */

/**
 * @typedef {{ argv: readonly [string, ...string[]] } | { path: string, text: string }} CgroupAction a command to run, or a file to write
 * @typedef {{ detail: string, actions: CgroupAction[], problems: import("./plan.mjs").Problem[] }} CgroupPlan
 */

/**
 * Decides what to mount and to enable; changes nothing.
 * @param {CgroupView} view
 * @returns {CgroupPlan}
 */
export function planCgroupMounts(view) {
  const mounts = parseMounts(view.mounts);
  const missing = NEEDED.filter((name) => !mounts.v1.has(name));
  if (missing.length < NEEDED.length) return planV1(view, mounts.v1, missing);
  // Some hosts mount version 2 without controllers beside version 1; it limits nothing.
  const unified =
    mounts.v2.find((path) => hasWords(view.read(`${path}/cgroup.controllers`), NEEDED_V2)) ?? mounts.v2[0];
  if (unified !== undefined) return planV2(view, unified);
  return planNothingMounted(view);
}

/**
 * @param {CgroupView} view
 * @param {Map<string, string>} mounted
 * @param {string[]} missing
 * @returns {CgroupPlan}
 */
function planV1(view, mounted, missing) {
  const detail = "version 1";
  if (missing.length > 0) return { detail, actions: missing.flatMap((name) => mountV1(view, name)), problems: [] };
  const paths = NEEDED.map((name) => /** @type {string} */ (mounted.get(name)));
  return { detail, actions: [], problems: paths.filter((path) => !view.isWritable(path)).map(readOnly) };
}

/**
 * @param {CgroupView} view
 * @param {string} path
 * @returns {CgroupPlan}
 */
function planV2(view, path) {
  const detail = "version 2";
  if (!hasWords(view.read(`${path}/cgroup.controllers`), NEEDED_V2)) {
    const missing = `The cgroup controllers ${NEEDED_V2.join(", ")}: ${path}/cgroup.controllers lacks some.`;
    const remedy =
      "In a container, run it with its own cgroups, for example: docker run --privileged --cgroupns=private …\n" +
      "On a machine, boot the kernel with cgroup_enable=memory, and without cgroup_disable";
    return { detail, actions: [], problems: [{ missing, remedy }] };
  }
  if (!view.isWritable(path)) return { detail, actions: [], problems: [readOnly(path)] };
  if (hasWords(view.read(`${path}/cgroup.subtree_control`), NEEDED_V2)) return { detail, actions: [], problems: [] };
  const text = NEEDED_V2.map((name) => `+${name}`).join(" ");
  return { detail, actions: [{ path: `${path}/cgroup.subtree_control`, text }], problems: [] };
}

/**
 * @param {CgroupView} view
 * @returns {CgroupPlan}
 */
function planNothingMounted(view) {
  const hierarchies = parseHierarchies(view.controllers);
  // Version 2 cannot use a controller that belongs to a version 1 hierarchy.
  if (NEEDED.every((name) => (hierarchies.get(name) ?? 0) === 0)) {
    return { detail: "version 2", actions: [{ argv: ["mount", "-t", "cgroup2", "cgroup2", ROOT] }], problems: [] };
  }
  /** @type {CgroupAction} */
  const base = { argv: ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", ROOT] };
  return { detail: "version 1", actions: [base, ...NEEDED.flatMap((name) => mountV1(view, name))], problems: [] };
}

/**
 * @param {CgroupView} view
 * @param {string} name
 * @returns {CgroupAction[]}
 */
function mountV1(view, name) {
  const hierarchies = parseHierarchies(view.controllers);
  const own = hierarchies.get(name) ?? 0;
  // The kernel mounts controllers that share a hierarchy only together.
  const together = own === 0 ? [name] : [...hierarchies].filter(([, id]) => id === own).map(([other]) => other);
  const path = `${ROOT}/${name}`;
  return [
    { argv: ["mkdir", "-p", path] },
    { argv: ["mount", "-t", "cgroup", "-o", together.join(","), "cgroup", path] },
  ];
}

/** @param {string} path */
function readOnly(path) {
  const remedy = `Run: mount -o remount,rw ${path}\nor start the container with writable cgroups (docker run --privileged).`;
  return { missing: `Write access to the cgroups at ${path}.`, remedy };
}

/** @param {string} text */
function parseMounts(text) {
  /** @type {Map<string, string>} */
  const v1 = new Map();
  /** @type {string[]} */
  const v2 = [];
  for (const line of text.split("\n")) {
    const [, path = "", type, options = ""] = line.split(" ");
    if (type === "cgroup2") v2.push(path);
    if (type === "cgroup") for (const name of options.split(",")) v1.set(name, path);
  }
  return { v1, v2 };
}

/** @param {string} text */
function parseHierarchies(text) {
  const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(rows.map((line) => line.split("\t")).map(([name = "", id]) => [name, Number(id)]));
}

/**
 * @param {string} text
 * @param {readonly string[]} words
 */
function hasWords(text, words) {
  const present = text.trim().split(/\s+/);
  return words.every((word) => present.includes(word));
}
