import { chmod, mkdir, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { findRunsc } from "../host/find-runsc.ts";
import { freshDirectory, putScript, shared } from "../host/testing/shared.ts";
import { idMappings } from "./id-mappings.ts";
import { IMAGE_MOUNT_POINT } from "./mount.ts";
import { createGvisorFixture } from "./testing/fixture.ts";
import { hostProcesses } from "./testing/host-processes.ts";

const fixture = await shared(createGvisorFixture());
const sandbox = await fixture.create();
const checkpoint = freshDirectory("checkpoint");

/** What gVisor may keep in its own user namespace: CHOWN, DAC_*, FOWNER, FSETID, SYS_CHROOT, SYS_PTRACE. */
const ALLOWED_CAPABILITIES = 0x0c_001fn;
const SECCOMP_FILTER = "2";

describe("the processes of a sandbox on the host", () => {
  it("run under an id of the sandbox, filtered, and without a way to new privileges", async () => {
    const id = String(idMappings(sandbox.id)[0]?.hostID);
    for (const { name, status } of await hostProcesses(sandbox.id, fixture.stateDirectory)) {
      expect(status["Uid"], name).toBe([id, id, id, id].join(" "));
      expect(status["Gid"], name).toBe([id, id, id, id].join(" "));
      expect(status["Groups"], name).toBe("");
      expect(status["NoNewPrivs"], name).toBe("1");
      expect(status["Seccomp"], name).toBe(SECCOMP_FILTER);
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
        expect(BigInt(`0x${status[set]}`) & ~ALLOWED_CAPABILITIES, `${set} of ${name}`).toBe(0n);
      }
    }
  });

  it("have capabilities only in a user namespace that maps no id of the host", async () => {
    for (const { pid, name } of await hostProcesses(sandbox.id, fixture.stateDirectory)) {
      for (const file of ["uid_map", "gid_map"]) {
        const lines = (await readFile(`/proc/${pid}/${file}`, "utf8")).trim().split("\n");
        const onHost = lines.map((line) => Number(line.trim().split(/\s+/)[1]));
        expect(Math.min(...onHost), `${file} of ${name}`).toBeGreaterThanOrEqual(0x7000_0000);
      }
    }
  });

  it("share no namespace of the host that gVisor can leave", async () => {
    for (const { pid, name } of await hostProcesses(sandbox.id, fixture.stateDirectory)) {
      const kinds = name === "gofer" ? ["user", "mnt", "net", "ipc"] : ["user", "mnt", "net", "ipc", "pid", "uts"];
      for (const kind of kinds) {
        const [own, host] = [await readlink(`/proc/${pid}/ns/${kind}`), await readlink(`/proc/self/ns/${kind}`)];
        expect(own, `${kind} namespace of ${name}`).not.toBe(host);
      }
    }
  });

  it("have another id in another sandbox", async () => {
    const ids = Array.from({ length: 100 }, () => idMappings(createSandboxId())[0]?.hostID);
    expect(new Set(ids).size).toBe(100);
  });
});

describe("a file below /usr that only root of the host may read", () => {
  it.each(["root", "user", "daemon", "nobody"])("cannot be read by %s in a sandbox", async (user) => {
    const directory = `/usr/local/share/sandpiper-test-${crypto.randomUUID()}`;
    const secret = crypto.randomUUID();
    try {
      await mkdir(join(directory, "closed"), { recursive: true, mode: 0o755 });
      for (const [name, mode] of [
        ["owner", 0o600],
        ["group", 0o640],
        ["program", 0o4750],
        ["closed/open", 0o644],
        ["public", 0o644],
      ] as const) {
        await writeFile(join(directory, name), secret);
        await chmod(join(directory, name), mode);
      }
      await chmod(join(directory, "closed"), 0o700);
      const { stdout } = await sandbox.exec(`cd ${directory} && cat owner group program closed/open; ls closed`, {
        user,
      });
      expect(stdout).toBe("");
      expect((await sandbox.exec(["cat", join(directory, "public")], { user })).stdout).toBe(secret);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});

describe("files of an image", () => {
  it("keep their owners and permissions inside", async () => {
    const { stdout } = await sandbox.exec("stat -c '%n %u:%g %a' /root /etc/passwd /home/user /tmp", { user: "root" });
    expect(stdout).toBe("/root 0:0 700\n/etc/passwd 0:0 644\n/home/user 1000:1000 755\n/tmp 0:0 1777\n");
  });
});

describe("a checkpoint of a sandbox whose gVisor ran as root of the host", () => {
  it("is restored under an id of the new sandbox", async () => {
    const [image] = await readdir(join(fixture.stateDirectory, "gvisor/images"));
    await using old = await Sandbox.create(
      fixture.newProvider({ runsc: await runscAsRoot(join(fixture.stateDirectory, "gvisor/images", image ?? "")) }),
      fixture.config,
    );
    expect((await hostProcesses(old.id, fixture.stateDirectory)).map(({ status }) => status["Uid"])).toContain(
      "0 0 0 0",
    );
    await old.exec("echo kept > /root/kept; sleep 600 & ", { user: "root" });
    await old.checkpoint(checkpoint, { keepsRunning: true });
    const prepared = await Sandbox.prepare(fixture.provider, old.config, { id: createSandboxId() });
    await using restored = await Sandbox.restore(fixture.provider, old.config, {
      prepared,
      directory: checkpoint,
      createdAt: old.createdAt,
    });
    expect((await restored.exec("cat /root/kept; ls -d /usr/bin", { user: "root" })).stdout).toBe("kept\n/usr/bin\n");
    for (const { status } of await hostProcesses(restored.id, fixture.stateDirectory))
      expect(status["Uid"]).not.toContain("0 0 0 0");
  });
});

/** Starts sandboxes without a mapping of ids. */
async function runscAsRoot(image: string): Promise<string> {
  const runsc = await findRunsc(undefined);
  if ("reason" in runsc) throw new Error(runsc.reason);
  const script = `
directory=$(printf '%s\\n' "$@" | sed -n '/^--bundle$/{n;p}')
[ -z "$directory" ] || sed -i -e 's|"${IMAGE_MOUNT_POINT}"|"${image}"|' -e 's|,{"type":"user"}||' \\
  -e 's|"[ug]idMappings":\\[[^]]*\\],||g' "$directory/config.json"
exec ${runsc.path} "$@"`;
  return await putScript(join(fixture.stateDirectory, "runsc-as-root"), script);
}
