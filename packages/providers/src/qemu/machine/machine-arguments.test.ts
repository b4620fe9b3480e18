import { describe, expect, it } from "vitest";
import { privilegeArguments } from "./privilege-arguments.ts";

describe("what takes QEMU's privileges away", () => {
  it.each([
    ["7.2.19", ["-runas", "7:7", "-chroot", "."]],
    ["8.2.2", ["-runas", "7:7", "-run-with", "chroot=."]],
    ["9.0.4", ["-runas", "7:7", "-run-with", "chroot=."]],
    ["9.1.0", ["-run-with", "user=7:7,chroot=."]],
    ["10.0.2", ["-run-with", "user=7:7,chroot=."]],
  ])("is said as QEMU %s knows it", (qemuVersion, expected) => {
    const [sandbox, filter, ...rest] = privilegeArguments({ qemuVersion, uid: 7 });
    expect([sandbox, rest]).toEqual(["-sandbox", expected]);
    expect(filter).toContain("spawn=deny");
  });
});
