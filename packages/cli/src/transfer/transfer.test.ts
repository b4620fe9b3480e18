import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { parseTransfer } from "./transfer.ts";

describe("--upload", () => {
  it("splits at the last colon", () => {
    expect(parseTransfer("upload", "a:b.txt:/tmp/c.txt", undefined)).toEqual({ from: "a:b.txt", to: "/tmp/c.txt" });
  });

  it("starts a relative target at the working directory, when one was given", () => {
    expect(parseTransfer("upload", "x:y", "/srv").to).toBe("/srv/y");
    expect(parseTransfer("upload", "x:/y", "/srv").to).toBe("/y");
    expect(parseTransfer("upload", "x:y", undefined).to).toBe("y");
  });

  it("keeps the source's name in a target that ends with a slash", () => {
    expect(parseTransfer("upload", "dir/x.py:/srv/", undefined).to).toBe("/srv/x.py");
    expect(parseTransfer("upload", ".:/srv/", undefined).to).toBe(`/srv/${basename(process.cwd())}`);
  });

  it.each(["x", ":y", "x:", ":"])("refuses %j", (text) => {
    expect(() => parseTransfer("upload", text, undefined)).toThrow(`--upload ${text} is not SRC:DST`);
  });
});

describe("--download", () => {
  it("starts a relative source at the working directory, when one was given", () => {
    expect(parseTransfer("download", "out.csv:./here.csv", "/srv")).toEqual({ from: "/srv/out.csv", to: "./here.csv" });
  });

  it("keeps the source's name in a target that ends with a slash", () => {
    expect(parseTransfer("download", "/srv/out.csv:here/", undefined).to).toBe("here/out.csv");
  });
});
