import { describe, expect, it } from "vitest";
import { distributionFamily } from "./host.mjs";

describe("a distribution", () => {
  it.each([
    ['PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n', "debian"],
    ["NAME=Ubuntu\nID=ubuntu\nID_LIKE=debian\n", "debian"],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian"],
    ["ID=fedora\nVERSION_ID=43\n", "fedora"],
    ['ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"],
    ["ID=arch\n", "arch"],
    ['ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "suse"],
    ["ID=alpine\n", undefined],
    ["", undefined],
  ])("that says %j belongs to the family %s", (osRelease, family) => {
    expect(distributionFamily(osRelease)).toBe(family);
  });
});
