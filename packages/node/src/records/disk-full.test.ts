import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { diskFullError } from "./disk-full.ts";

const failure = (fields: object) => Object.assign(new Error("failed"), fields);

describe("an error of a full disk", () => {
  it.each([
    ["a full file system", failure({ code: "ENOSPC", path: "/data/x" }), "the disk of /data/x is full"],
    ["a disk quota", failure({ code: "EDQUOT" }), "a disk is full"],
    ["SQLite", failure({ code: "ERR_SQLITE_ERROR", errcode: 13 }), "the disk of its home directory is full"],
    ["SQLite's shared memory", failure({ errcode: 4874 }), "the disk of its home directory is full"],
    ["its cause", SandboxError.from(failure({ code: "ENOSPC", path: "/a" })), "the disk of /a is full"],
    ["the error before a failed clean-up", new SuppressedError(new Error(), failure({ code: "ENOSPC" })), "a disk"],
  ])("is recognized by %s", (_, thrown, disk) => {
    const error = diskFullError(thrown);
    expect(error).toMatchObject({ code: "resource_exhausted", reason: "disk_full", cause: thrown });
    expect(error?.message).toContain(disk);
  });

  it("keeps a reason that is more precise", () => {
    const cause = failure({ code: "ENOSPC" });
    expect(diskFullError(new SandboxError("store_full", { message: "full", cause }))).toBeUndefined();
  });

  it.each([[failure({ code: "EACCES" })], [failure({ errcode: 11 })], ["ENOSPC"], [null]])("is not %o", (thrown) => {
    expect(diskFullError(thrown)).toBeUndefined();
  });
});
