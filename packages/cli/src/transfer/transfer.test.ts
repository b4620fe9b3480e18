import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { parseTransfer } from "./transfer.ts";

describe("--upload", () => {
  it("splits at the last colon", () => {
    expect(parseTransfer("upload", "a:b.txt:/tmp/c.txt", {})).toEqual({
      from: "a:b.txt",
      to: "/tmp/c.txt",
      shown: "--upload a:b.txt:/tmp/c.txt",
    });
  });

  it("starts a relative target at the working directory, when one was given", () => {
    expect(parseTransfer("upload", "x:y", { cwd: "/srv" }).to).toBe("/srv/y");
    expect(parseTransfer("upload", "x:/y", { cwd: "/srv" }).to).toBe("/y");
    expect(parseTransfer("upload", "x:y", {}).to).toBe("y");
  });

  it("keeps the source's name in a target that ends with a slash", () => {
    expect(parseTransfer("upload", "dir/x.py:/srv/", {}).to).toBe("/srv/x.py");
    expect(parseTransfer("upload", ".:/srv/", {}).to).toBe(`/srv/${basename(process.cwd())}`);
  });

  it.each(["x", ":y", "x:", ":"])("refuses %j", (text) => {
    expect(() => parseTransfer("upload", text, {})).toThrow(`for --upload: expected SRC:DST`);
  });
});

describe("a relative path inside", () => {
  it("is refused when --user makes its home directory ambiguous", () => {
    expect(() => parseTransfer("upload", "x:y", { user: "root" })).toThrow("is ambiguous with --user root");
    expect(() => parseTransfer("download", "x:y", { user: "root" })).toThrow("is ambiguous with --user root");
    expect(parseTransfer("upload", "x:/y", { user: "root" }).to).toBe("/y");
    expect(parseTransfer("upload", "x:y", { user: "root", cwd: "/srv" }).to).toBe("/srv/y");
  });
});

describe("--download", () => {
  it("starts a relative source at the working directory, when one was given", () => {
    expect(parseTransfer("download", "out.csv:./here.csv", { cwd: "/srv" })).toEqual({
      from: "/srv/out.csv",
      to: "./here.csv",
      shown: "--download out.csv:./here.csv",
    });
  });

  it("keeps the source's name in a target that ends with a slash", () => {
    expect(parseTransfer("download", "/srv/out.csv:here/", {}).to).toBe("here/out.csv");
  });
});
