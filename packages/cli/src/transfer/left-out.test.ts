import { describe, expect, it } from "vitest";
import { LeftOut } from "./left-out.ts";

describe("skipped entries", () => {
  it("are not reported when there are none", () => {
    expect(new LeftOut().message).toBeUndefined();
  });

  it("are named with control characters escaped", () => {
    const leftOut = new LeftOut();
    leftOut.add("a\x1b[2Jb", "fifo");
    expect(leftOut.message).toBe('skipped, since only files and directories are copied: "a\\u001b[2Jb" (fifo)');
  });

  it("are counted beyond the first three", () => {
    const leftOut = new LeftOut();
    for (let count = 0; count < 1000; count++) leftOut.add(`link${count}`, "symlink");
    expect(leftOut.message).toMatch(/"link0" \(symlink\), "link1" \(symlink\), "link2" \(symlink\) and 997 more$/);
  });
});
