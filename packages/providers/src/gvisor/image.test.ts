import { mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../host/testing/shared.ts";
import { hostEtcEntries } from "./host-etc.ts";
import { directoryImage, maskMounts } from "./image.ts";

const root = await realpath(freshDirectory("image"));
const state = join(root, "state");
beforeEach(() => mkdir(state));

describe("a directory as an image", () => {
  it("is used as it is, with links followed", async () => {
    await mkdir(join(root, "rootfs/tmp/full"), { recursive: true });
    await symlink("rootfs", join(root, "link"));
    expect(await directoryImage(join(root, "link"), state)).toEqual({ root: join(root, "rootfs"), mounts: [] });
  });

  it("gets a file in an empty /tmp, so that /tmp counts as disk", async () => {
    await mkdir(join(root, "rootfs/tmp"), { recursive: true });
    const { mounts } = await directoryImage(join(root, "rootfs"), state);
    expect(mounts.map(({ destination }) => destination)).toEqual(["/tmp/.X11-unix"]);
  });

  it("is refused with the reason when it is unusable", async () => {
    await writeFile(join(root, "file"), "");
    await mkdir(join(state, "inside"));
    const refusals = {
      "relative/path": "relative_rootfs",
      [join(root, "missing")]: "no_such_rootfs",
      [join(root, "file")]: "rootfs_not_a_directory",
      [join(state, "inside")]: "rootfs_overlaps_state",
      [root]: "rootfs_overlaps_state",
      "/": "rootfs_overlaps_state",
    };
    for (const [rootfs, reason] of Object.entries(refusals)) {
      await expect(directoryImage(rootfs, state), rootfs).rejects.toMatchObject({ code: "invalid_argument", reason });
    }
  });
});

describe("a private directory of the host", () => {
  it("is hidden wherever a bind would show it, and only there", () => {
    const covered = maskMounts(["/usr", "/bin"], ["/usr/lib/sandpiper", "/usr/..odd", "/usrlocal", "/root/.sandpiper"]);
    expect(covered.map(({ destination, type }) => [destination, type])).toEqual([
      ["/usr/lib/sandpiper", "tmpfs"],
      ["/usr/..odd", "tmpfs"],
    ]);
    for (const { options } of covered) expect(options).toContain("ro");
  });
});

describe("the host's /etc in the host image", () => {
  const entriesOf = async (files: Record<string, number>) => {
    const etc = join(root, "etc");
    for (const [path, mode] of Object.entries(files)) {
      await mkdir(join(etc, path, ".."), { recursive: true });
      await writeFile(join(etc, path), path, { mode });
    }
    return hostEtcEntries(etc).map(({ path }) => path);
  };

  it("contains only the files that the list allows", async () => {
    const paths = await entriesOf({
      "ld.so.cache": 0o644,
      "python3.11/sitecustomize.py": 0o644,
      "ssl/certs/ca.pem": 0o644,
      "ssl/private/key.pem": 0o644,
      "pki/tls/private/key.pem": 0o644,
      shadow: 0o644,
      "ssh/ssh_host_ed25519_key": 0o644,
      "sudoers.d/admin": 0o644,
      npmrc: 0o644,
      "profile.d/token.sh": 0o644,
      "machine-id": 0o444,
    });
    expect(paths.toSorted()).toEqual([
      "etc/ld.so.cache",
      "etc/python3.11",
      "etc/python3.11/sitecustomize.py",
      "etc/ssl/certs",
      "etc/ssl/certs/ca.pem",
    ]);
  });

  it("leaves out files that not every user may read, even if the list allows them", async () => {
    const paths = await entriesOf({ "java-17/management/jmxremote.password": 0o600, "java-17/net.properties": 0o644 });
    expect(paths).toContain("etc/java-17/net.properties");
    expect(paths).not.toContain("etc/java-17/management/jmxremote.password");
  });

  it("changes its version when a file changes", async () => {
    await entriesOf({ "mime.types": 0o644 });
    const before = hostEtcEntries(join(root, "etc"));
    await writeFile(join(root, "etc/mime.types"), "changed");
    expect(hostEtcEntries(join(root, "etc"))).not.toEqual(before);
  });
});
