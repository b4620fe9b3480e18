import { describe, expect, it } from "vitest";
import { LeftOut } from "./left-out.ts";

describe("what a transfer left out", () => {
  it("is nothing to speak of when everything was copied", () => {
    expect(new LeftOut().message).toBeUndefined();
  });

  it("is named, without letting a name reach the terminal as it is", () => {
    const leftOut = new LeftOut();
    leftOut.add("a\x1b[2Jb", "fifo");
    expect(leftOut.message).toBe('left out, since only files and directories are copied: "a\\u001b[2Jb" (fifo)');
  });

  it("is counted when it is much", () => {
    const leftOut = new LeftOut();
    for (let count = 0; count < 1000; count++) leftOut.add(`link${count}`, "symlink");
    expect(leftOut.message).toMatch(/"link0" \(symlink\), "link1" \(symlink\), "link2" \(symlink\) and 997 more$/);
  });
});
