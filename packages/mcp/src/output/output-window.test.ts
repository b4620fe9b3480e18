import { describe, expect, it } from "vitest";
import { OutputWindow } from "./output-window.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** A window after these pieces of output. */
function windowOf(roomBytes: number, ...pieces: readonly (readonly ["stdout" | "stderr", string])[]): OutputWindow {
  const window = new OutputWindow(roomBytes);
  let offset = 0;
  for (const [source, text] of pieces) {
    const bytes = encode(text);
    window.add({ source, bytes, offset, dropped: 0 });
    offset += bytes.length;
  }
  return window;
}

describe("a window on output", () => {
  it("shows all output that fits, to the last byte", () => {
    const window = windowOf(10, ["stdout", "abcde"], ["stdout", "fghij"]);
    expect(window.leftOut).toBeUndefined();
    expect(window.text({ marker: "|" })).toBe("abcdefghij");
  });

  it("keeps the head and the tail of long output, with the range of the gap", () => {
    const window = windowOf(10, ["stdout", "abcdefgh"], ["stdout", "ijklmnop"], ["stdout", "qrstuvwxyz"]);
    expect(window.leftOut).toEqual({ offset: 5, bytes: 16 });
    expect(window.text({ marker: "|" })).toBe("abcde|vwxyz");
    expect(window.endOffset).toBe(26);
  });

  it("shows each source separately, with a marker only where its output is cut", () => {
    const window = windowOf(8, ["stderr", "EE"], ["stdout", "aaaaaaaaaa"], ["stderr", "FFFF"]);
    expect(window.text({ marker: "|", source: "stdout" })).toBe("aa|");
    expect(window.text({ marker: "|", source: "stderr" })).toBe("EEFFFF");
  });

  it("cuts no character in half", () => {
    const window = windowOf(8, ["stdout", "aaaü€€€€üaaa"]);
    expect(window.text({ marker: "|" })).toBe("aaa|aaa");
    expect(window.leftOut).toEqual({ offset: 3, bytes: 16 });
  });

  it("joins a character that came in two pieces", () => {
    const window = new OutputWindow(100);
    const bytes = encode("ü");
    window.add({ source: "stdout", bytes: bytes.subarray(0, 1), offset: 0, dropped: 0 });
    window.add({ source: "stdout", bytes: bytes.subarray(1), offset: 1, dropped: 0 });
    expect(window.text({ marker: "" })).toBe("ü");
  });
});
