import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { type LayerProgress, PullView, type PullViewOptions } from "./pull-view.ts";

const MIB = 1024 * 1024;

function setUp(options: PullViewOptions) {
  const clock = new FakeClock();
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const view = new PullView({ columns: 60, rows: 10, ...options, clock, write });
  const add = (layer: string, status: LayerProgress["status"], doneBytes = 0, totalBytes: number | null = null) =>
    view.add({ image: "python:3.13", layer, status, doneBytes, totalBytes });
  const written = () => {
    const all = text;
    text = "";
    return all;
  };
  return { view, clock, add, written };
}

describe("a pull on a terminal", () => {
  it("is redrawn in place with a line per layer, and erased at the end", async () => {
    const { view, clock, add, written } = setUp({ as: "block" });
    add("aaaaaaaaaaaaaaaa", "downloading", 2 * MIB, 8 * MIB);
    expect(written()).toBe("pulling python:3.13: 0 of 1 layers\naaaaaaaaaaaa  downloading  2.00 MiB of 8.00 MiB\n");
    add("bb", "waiting");
    expect(written()).toBe("");
    await clock.advance(150);
    add("aaaaaaaaaaaaaaaa", "complete", 8 * MIB, 8 * MIB);
    expect(written()).toBe(
      "\x1b[2A\r\x1b[Jpulling python:3.13: 1 of 2 layers\naaaaaaaaaaaa  complete  8.00 MiB\nbb            waiting\n",
    );
    view[Symbol.dispose]();
    view[Symbol.dispose]();
    expect(written()).toBe("\x1b[3A\r\x1b[J");
  });

  it("fits the terminal and passes no escape sequence of a layer's name", async () => {
    const { clock, add, written } = setUp({ as: "block", columns: 30, rows: 5 });
    for (let layer = 0; layer < 20; layer++) add(`layer ${layer}`, layer < 15 ? "complete" : "downloading");
    await clock.advance(150);
    written();
    add("\x1b[2Jx", "downloading", 5 * MIB, 9 * MIB);
    const lines = written().split("\n");
    expect(lines.length - 1).toBeLessThanOrEqual(4);
    for (const line of lines.slice(1)) expect(line.length).toBeLessThan(30);
    expect(lines.slice(1).join("")).not.toContain("\x1b");
  });
});

describe("a pull without a terminal", () => {
  it("prints a line for each change of a layer's status", () => {
    const { view, add, written } = setUp({ as: "lines" });
    add("aa", "downloading", MIB, 2 * MIB);
    add("aa", "downloading", 2 * MIB, 2 * MIB);
    add("aa", "complete", 2 * MIB, 2 * MIB);
    view[Symbol.dispose]();
    expect(written()).toBe(
      "sandpiper: pulling python:3.13\n" +
        "sandpiper: aa            downloading  1.00 MiB of 2.00 MiB\n" +
        "sandpiper: aa            complete  2.00 MiB\n",
    );
  });

  it("prints nothing when suppressed", () => {
    const { view, add, written } = setUp({ as: "nothing" });
    add("aa", "downloading", MIB);
    view[Symbol.dispose]();
    expect(written()).toBe("");
  });
});
