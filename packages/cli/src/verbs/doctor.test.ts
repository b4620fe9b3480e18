import { describe, expect, it } from "vitest";
import { doctorReport } from "./doctor.ts";

const plain = (text: string) => text.replaceAll(/\p{Cc}\[\d+m/gu, "");

describe("a diagnosis for people", () => {
  it("aligns its checks and shows each hint below its check", () => {
    const report = doctorReport({
      works: false,
      checks: [
        { name: "node", status: "ok", detail: "v26" },
        { name: "cgroups", status: "failed", detail: "none", hint: "Mount them." },
        { name: "disk", status: "warning", detail: "full", hint: "Free some." },
      ],
    });
    expect(plain(report).split("\n").slice(0, 5)).toEqual([
      "✓ node     v26",
      "✗ cgroups  none",
      "           Mount them.",
      "! disk     full",
      "           Free some.",
    ]);
    expect(report).toContain("does not work here yet");
  });

  it("suggests a command to try when the machine works", () => {
    expect(doctorReport({ works: true, checks: [{ name: "node", status: "ok", detail: "v26" }] })).toContain("Try: ");
  });
});
