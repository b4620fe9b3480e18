import { mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { type PathPolicy, requireAllowedPath } from "./allowed-path.ts";
import { sharedDirectory } from "./testing/shared.ts";

const base = await realpath(sharedDirectory("binds"));
const allowed = join(base, "allowed");

beforeAll(async () => {
  await mkdir(join(allowed, "project"), { recursive: true });
  await mkdir(join(allowed, "state"));
  await mkdir(join(base, "allowed-not"));
  await writeFile(join(allowed, "file"), "");
  await symlink(base, join(allowed, "out"));
  await symlink(join(allowed, "project"), join(base, "in"));
  await symlink("/etc", join(allowed, "passwords"));
});

function policy(options: Partial<PathPolicy> = {}): PathPolicy {
  return { allowedPaths: [allowed], ownPaths: [], isRemote: false, ...options };
}

describe("a mounted host path", () => {
  it("may be an allowed directory or a subdirectory", async () => {
    expect(await requireAllowedPath(allowed, policy())).toBe(allowed);
    expect(await requireAllowedPath(`${allowed}/project/`, policy())).toBe(join(allowed, "project"));
  });

  it("is resolved through symlinks before it is checked and mounted", async () => {
    expect(await requireAllowedPath(join(base, "in"), policy())).toBe(join(allowed, "project"));
    expect(await rejection(requireAllowedPath(join(allowed, "out"), policy()))).toMatchObject({
      code: "invalid_argument",
      reason: "path_not_allowed",
    });
  });

  it("is rejected by default", async () => {
    expect(await rejection(requireAllowedPath(allowed, policy({ allowedPaths: [] })))).toMatchObject({
      reason: "path_not_allowed",
      message: `a sandbox may not mount ${allowed}; no path is allowed`,
    });
  });

  it("is rejected outside the allowed ones, with a list of them", async () => {
    for (const path of [base, join(base, "allowed-not"), `${allowed}/../allowed-not`, `${allowed}/project/..`, "/"]) {
      const error = await rejection(requireAllowedPath(path, policy()));
      expect(error).toMatchObject({ reason: "path_not_allowed", details: { path, allowedPaths: [allowed] } });
      expect(error.message).toContain(`allowed: ${allowed}`);
    }
  });

  it("is reported missing only below an allowed one", async () => {
    expect((await rejection(requireAllowedPath(join(allowed, "nope"), policy()))).reason).toBe("no_such_path");
    expect((await rejection(requireAllowedPath(join(base, "nope"), policy()))).reason).toBe("path_not_allowed");
  });

  it("must be a directory", async () => {
    expect((await rejection(requireAllowedPath(join(allowed, "file"), policy()))).reason).toBe("path_not_a_directory");
  });

  it.each(["/", "/proc", "/proc/self", "/sys", "/dev/shm", "/etc", "/etc/ssl", "/run", "/var"])(
    "is never %s, even when everything is allowed",
    async (path) => {
      const error = await rejection(requireAllowedPath(path, policy({ allowedPaths: ["/"] })));
      expect(error).toMatchObject({ code: "invalid_argument", reason: "path_not_allowed" });
    },
  );

  it("is not a system directory reached through a symlink either", async () => {
    const error = await rejection(requireAllowedPath(join(allowed, "passwords"), policy({ allowedPaths: ["/"] })));
    expect(error.message).toContain("(/etc): it contains files of the system");
  });

  it("may be below a system directory if it is allowed explicitly", async () => {
    expect(await requireAllowedPath("/etc/ssl", policy({ allowedPaths: ["/etc/ssl"] }))).toBe("/etc/ssl");
    const kernel = await rejection(requireAllowedPath("/proc/sys", policy({ allowedPaths: ["/proc/sys"] })));
    expect(kernel.reason).toBe("path_not_allowed");
  });

  it("contains neither Sandpiper's own state nor the engine's socket", async () => {
    const own = policy({ ownPaths: [join(allowed, "state/docker.sock")] });
    for (const path of [allowed, join(allowed, "state")]) {
      expect((await rejection(requireAllowedPath(path, own))).reason).toBe("path_not_allowed");
    }
    expect(await requireAllowedPath(join(allowed, "project"), own)).toBe(join(allowed, "project"));
  });

  it("is compared as written if the engine is on another machine", async () => {
    const remote = policy({ allowedPaths: ["/there"], isRemote: true });
    expect(await requireAllowedPath("/there/project", remote)).toBe("/there/project");
    for (const path of ["/therefore", "/there/../etc", "/there/./x", "//there/x", allowed]) {
      const error = await rejection(requireAllowedPath(path, remote));
      expect(error).toMatchObject({ reason: "path_not_allowed" });
      expect(error.message).toContain("compared as written");
    }
  });
});
