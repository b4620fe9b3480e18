import { once } from "node:events";
import {
  chmod,
  chown,
  lchown,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { findLauncher } from "../host/find-agent.ts";
import { runProgram } from "../host/run-program.ts";
import { freshDirectory, shared, sharedDirectory } from "../host/testing/shared.ts";
import { idMappings } from "./id-mappings.ts";
import { GvisorProvider } from "./provider.ts";
import { hostProcesses } from "./testing/host-processes.ts";
import { mounted, mountOverlay, run } from "./testing/overlay.ts";

const overlay = (await shared(mountOverlay(sharedDirectory("overlay")))).path;
const directory = freshDirectory("mapped");

/** Runs a script in the mount of the image, and returns what it writes to `seen`. */
async function look(image: string, script: string): Promise<string> {
  const root = ["--root", image, join(directory, "mount-point"), "0 70000 1\n1 80001 9\n"];
  const argv = ["/bin/sh", "-c", `cd ${directory}/mount-point && (${script}) > ${directory}/seen 2>&1`];
  const { exitCode } = await runProgram([findLauncher(), ...root, String(process.pid), directory, ...argv]);
  if (exitCode !== 0) throw new Error(await readFile(join(directory, "launch.log"), "utf8"));
  return await readFile(join(directory, "seen"), "utf8");
}

describe.each([
  { system: "a file system with id-mapped mounts", parent: directory },
  { system: "overlayfs, which refuses id-mapped mounts", parent: overlay },
])("a program that is launched with an image on $system", ({ parent }) => {
  it("sees mapped owners of the image's files, at a mount that the host does not have", async () => {
    const image = join(parent, "image");
    await mkdir(image);
    for (const owner of [0, 7, 99]) {
      await writeFile(join(image, String(owner)), "");
      await chown(join(image, String(owner)), owner, owner);
    }
    expect(await look(image, "stat -c '%n %u:%g' 0 7 99")).toBe("0 70000:70000\n7 80007:80007\n99 65534:65534\n");
    expect((await stat(join(image, "7"))).uid).toBe(7);
    expect(await readdir(join(directory, "mount-point"))).toEqual([]);
  });
});

describe("the copy of an image on overlayfs", () => {
  it("has the image's directories, files, links, modes and times, without set-uid programs", async () => {
    const image = join(overlay, "tree");
    await mkdir(join(image, "d/e"), { recursive: true });
    await writeFile(join(image, "d/e/file"), "content");
    await writeFile(join(image, "program"), "");
    await chmod(join(image, "program"), 0o6755);
    await mkdir(join(image, "tmp"));
    await chmod(join(image, "tmp"), 0o3777);
    await symlink("/etc/passwd", join(image, "link"));
    await lchown(join(image, "link"), 3, 3);
    await chown(join(image, "d"), 7, 8);
    await chmod(image, 0o751);
    for (const name of ["d/e/file", "d", "."]) await utimes(join(image, name), 2_000_000, 2_000_000);
    const names = ". d d/e/file link program tmp";
    expect(await look(image, `stat -c '%N %F %u:%g %a' ${names}; cat d/e/file; stat -c ' %Y' d/e/file d .`)).toBe(
      [
        "'.' directory 70000:70000 751",
        "'d' directory 80007:80008 755",
        "'d/e/file' regular file 70000:70000 644",
        "'link' -> '/etc/passwd' symbolic link 80003:80003 777",
        "'program' regular empty file 70000:70000 755",
        "'tmp' directory 70000:70000 3777",
        ...["content 2000000", " 2000000", " 2000000", ""],
      ].join("\n"),
    );
  });

  it("has no device, socket or FIFO, and nothing that is mounted or linked into the image", async () => {
    const image = join(overlay, "special");
    await mkdir(image);
    await run("/bin/mknod", join(image, "device"), "c", "1", "3");
    await run("/bin/mknod", join(image, "fifo"), "p");
    await using server = createServer().listen(join(image, "socket"));
    await once(server, "listening");
    await symlink("/etc", join(image, "directory"));
    await using _ = await mounted(join(image, "mounted"), ["--bind", "/etc"]);
    expect(await look(image, "find . | sort")).toBe(".\n./directory\n./mounted\n");
  });

  it("ignores set-uid bits and devices, and disappears with the program", async () => {
    const image = join(overlay, "options");
    await mkdir(image);
    expect(await look(image, "grep mapped /proc/self/mounts")).toMatch(/ tmpfs rw,nosuid,nodev,.*size=65536k/);
    expect(await readFile("/proc/self/mounts", "utf8")).not.toContain(`${directory}/mount-point`);
  });

  it("is refused above 64 MiB, with the remedy", async () => {
    const image = join(overlay, "large");
    await mkdir(image);
    await writeFile(join(image, "file"), "");
    await truncate(join(image, "file"), 65 * 1024 * 1024);
    await expect(look(image, "true")).rejects.toThrow(
      /large has more than 64 MiB.* does not support id-mapped mounts: move it to ext4, xfs or btrfs, on Linux 5.12/,
    );
  });
});

describe("a sandbox whose state directory is on overlayfs", () => {
  it("runs under its own id, writes to its home, and is restored from a checkpoint", async () => {
    const stateDirectory = join(overlay, "home");
    const provider = new GvisorProvider({ stateDirectory });
    await using sandbox = await Sandbox.create(provider, { diskMib: 64 });
    await expectOwnId(sandbox);
    const write = "whoami; echo kept > /home/user/kept; stat -c '%u:%g %a' /home/user /root";
    expect((await sandbox.exec(write)).stdout).toBe("user\n1000:1000 755\n0:0 700\n");
    const checkpoint = join(overlay, "checkpoint");
    await mkdir(checkpoint);
    await sandbox.checkpoint(checkpoint, { keepsRunning: true });

    const prepared = await Sandbox.prepare(provider, sandbox.config, { id: createSandboxId() });
    const { createdAt } = sandbox;
    await using restored = await Sandbox.restore(provider, sandbox.config, {
      prepared,
      directory: checkpoint,
      createdAt,
    });
    expect((await restored.exec("cat ~/kept; echo more >> ~/kept; cat ~/kept; head -1 /etc/passwd")).stdout).toMatch(
      /^kept\nkept\nmore\nroot:/,
    );
    await expectOwnId(restored);

    async function expectOwnId({ id }: Sandbox): Promise<void> {
      const own = String(idMappings(id)[0]?.hostID);
      for (const { name, status } of await hostProcesses(id, stateDirectory)) {
        expect(status["Uid"], name).toBe([own, own, own, own].join(" "));
      }
    }
  });
});
