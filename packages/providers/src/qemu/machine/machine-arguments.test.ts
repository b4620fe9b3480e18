import { describe, expect, it } from "vitest";
import { privilegeArguments } from "./machine-arguments.ts";

describe("QEMU's command line", () => {
  it.each([
    ["7.2.19", ["-runas", "7:7", "-chroot", "."]],
    ["8.2.2", ["-runas", "7:7", "-run-with", "chroot=."]],
    ["9.0.4", ["-runas", "7:7", "-run-with", "chroot=."]],
    ["9.1.0", ["-run-with", "user=7:7,chroot=."]],
    ["10.0.2", ["-run-with", "user=7:7,chroot=."]],
  ])("drops privileges with the options of QEMU %s", (qemuVersion, expected) => {
    const [sandbox, filter, ...rest] = privilegeArguments({ qemuVersion, uid: 7 });
    expect([sandbox, rest]).toEqual(["-sandbox", expected]);
    expect(filter).toContain("spawn=deny");
  });
});
