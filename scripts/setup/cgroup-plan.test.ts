import { describe, expect, it } from "vitest";
import { type CgroupView, planCgroupMounts } from "./cgroup-plan.mjs";

const separateHierarchies =
  "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\nmemory\t4\t16\t1\npids\t8\t1\t1\n";
const unusedHierarchies =
  "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t1\t1\nmemory\t0\t1\t1\npids\t0\t1\t1\n";
const v1Mounts = ["cpu", "memory", "pids"].map(v1Mount).join("\n");
const v2Mount = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
const done = { actions: [], problems: [] };

describe("set-up on cgroups of version 1", () => {
  it("does nothing when cpu, memory and pids are mounted and writable", () => {
    expect(plan({ mounts: v1Mounts })).toMatchObject({ detail: "version 1", ...done });
  });

  it("uses them even if an empty version 2 is mounted beside them", () => {
    const mounts = `${v1Mounts}\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n`;
    expect(plan({ mounts })).toMatchObject({ detail: "version 1", ...done });
  });

  it("mounts the controller that is not mounted yet", () => {
    const mounts = [v1Mount("cpu"), v1Mount("memory")].join("\n");
    expect(commands({ mounts })).toEqual([
      "mkdir -p /sys/fs/cgroup/pids",
      "mount -t cgroup -o pids cgroup /sys/fs/cgroup/pids",
    ]);
  });

  it("mounts controllers that share a hierarchy together", () => {
    const controllers = separateHierarchies.replace("cpu\t1", "cpu\t1\t1\t1\ncpuacct\t1");
    expect(commands({ mounts: v1Mount("memory"), controllers })).toContain(
      "mount -t cgroup -o cpu,cpuacct cgroup /sys/fs/cgroup/cpu",
    );
  });

  it("reports a read-only controller", () => {
    const { problems } = plan({ mounts: v1Mounts, isWritable: (path) => !path.endsWith("/memory") });
    expect(problems.map((problem) => problem.missing)).toEqual([
      "Write access to the cgroups at /sys/fs/cgroup/memory.",
    ]);
  });
});

describe("set-up on cgroups of version 2", () => {
  const controllers = "cpuset cpu io memory pids\n";

  it("does nothing when the five controllers are enabled", () => {
    const files = { "cgroup.controllers": controllers, "cgroup.subtree_control": controllers };
    expect(plan({ mounts: v2Mount, files })).toMatchObject({ detail: "version 2", ...done });
  });

  it("enables the controllers that are not enabled", () => {
    const files = { "cgroup.controllers": controllers, "cgroup.subtree_control": "cpu memory pids\n" };
    expect(plan({ mounts: v2Mount, files }).actions).toEqual([
      { path: "/sys/fs/cgroup/cgroup.subtree_control", text: "+cpuset +cpu +io +memory +pids" },
    ]);
  });

  it.each(["cpuset", "cpu", "io", "memory", "pids"])("reports that the controller %s is missing", (name) => {
    const files = { "cgroup.controllers": controllers.replace(new RegExp(`\\b${name}\\b`), "") };
    const { problems, actions } = plan({ mounts: v2Mount, files });
    expect(problems[0]?.missing).toContain("/sys/fs/cgroup/cgroup.controllers lacks some");
    expect(actions).toEqual([]);
  });
});

describe("set-up on a host without mounted cgroups", () => {
  it.each([
    ["no controller belongs to version 1", unusedHierarchies],
    ["the kernel lists no version 1 controllers", ""],
  ])("mounts version 2 when %s", (_, controllers) => {
    expect(commands({ mounts: "", controllers })).toEqual(["mount -t cgroup2 cgroup2 /sys/fs/cgroup"]);
  });

  it("mounts version 1 when its controllers belong to version 1", () => {
    expect(commands({ mounts: "", controllers: separateHierarchies })).toEqual([
      "mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup",
      "mkdir -p /sys/fs/cgroup/cpu",
      "mount -t cgroup -o cpu cgroup /sys/fs/cgroup/cpu",
      "mkdir -p /sys/fs/cgroup/memory",
      "mount -t cgroup -o memory cgroup /sys/fs/cgroup/memory",
      "mkdir -p /sys/fs/cgroup/pids",
      "mount -t cgroup -o pids cgroup /sys/fs/cgroup/pids",
    ]);
  });
});

interface Host extends Partial<Omit<CgroupView, "read">> {
  readonly files?: Readonly<Record<string, string>>;
}

function plan({ files = {}, ...host }: Host) {
  return planCgroupMounts({
    mounts: "",
    controllers: separateHierarchies,
    isWritable: () => true,
    read: (path) => files[path.replace("/sys/fs/cgroup/", "")] ?? "",
    ...host,
  });
}

function commands(host: Host): string[] {
  return plan(host).actions.map((action) => ("argv" in action ? action.argv.join(" ") : `write ${action.path}`));
}

function v1Mount(name: string): string {
  return `cgroup /sys/fs/cgroup/${name} cgroup rw,relatime,${name} 0 0`;
}
