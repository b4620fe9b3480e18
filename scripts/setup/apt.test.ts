import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Apt } from "./apt.mjs";
import { findProgram } from "./programs.mjs";

const available = [
  { name: "libc6", version: "2.36" },
  { name: "dpkg", version: "1.21", depends: "libc6", isEssential: true },
  { name: "docker.io", version: "20.10", depends: "containerd, runc, libdevmapper, libc6" },
  { name: "containerd", version: "1.6", depends: "runc" },
  { name: "runc", version: "1.1", depends: "libseccomp2" },
  { name: "libdevmapper", version: "1.2", depends: "libc6" },
  { name: "libseccomp2", version: "2.5", depends: "libc6" },
];

const machines = {
  "without any of the packages": "",
  "with docker.io and runc installed": status("install ok installed"),
  "with docker.io and runc removed, but not purged": status("deinstall ok config-files"),
  "with a newer runc than the lists have": status("install ok installed").replace("Version: 1.1", "Version: 9.9"),
};

describe.skipIf(findProgram("apt-get") === undefined)(
  `apt${findProgram("apt-get") === undefined ? " (skipped: this machine has no apt-get)" : ""}`,
  () => {
    let directory: string;
    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), "sandpiper-apt-"));
      for (const name of ["repository", "lists/partial", "archives/partial", "parts"]) {
        mkdirSync(join(directory, name), { recursive: true });
      }
      writeFileSync(join(directory, "repository/Packages"), available.map((entry) => stanza(entry)).join("\n"));
      writeFileSync(join(directory, "sources.list"), `deb [trusted=yes] file:${directory}/repository ./\n`);
      useMachine("");
      await new Apt(directory).update("Reading the lists");
    });
    afterAll(() => {
      vi.unstubAllEnvs();
      rmSync(directory, { recursive: true });
    });

    /** Makes apt see a machine with these packages installed and the lists above. */
    function useMachine(status: string) {
      writeFileSync(join(directory, "installed"), status);
      const settings = {
        "Dir::State::status": join(directory, "installed"),
        "Dir::State::lists": join(directory, "lists"),
        "Dir::Etc::sourcelist": join(directory, "sources.list"),
        "Dir::Etc::sourceparts": join(directory, "parts"),
        "Dir::Etc::preferencesparts": join(directory, "parts"),
        "Dir::Cache": directory,
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
      };
      const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";`);
      writeFileSync(join(directory, "apt.conf"), lines.join("\n"));
      vi.stubEnv("APT_CONFIG", join(directory, "apt.conf"));
    }

    it.each(Object.entries(machines))("chooses the same packages and versions on a machine %s", async (_, status) => {
      useMachine(status);
      const apt = new Apt(directory);
      expect((await apt.closureBeyondBase(["docker.io"])).sort()).toEqual([
        "containerd=1.6",
        "docker.io=20.10",
        "libdevmapper=1.2",
        "libseccomp2=2.5",
        "runc=1.1",
      ]);
      expect(await apt.closure(["runc"])).toHaveLength(3);
      expect(apt.candidate("runc")).toBe("1.1");
      expect(apt.candidate("crun")).toBeUndefined();
    });

    it("names the package that the lists do not have", async () => {
      await expect(new Apt(directory).closure(["crun"])).rejects.toThrow("Unable to locate package crun");
    });
  },
);

interface Package {
  readonly name: string;
  readonly version: string;
  readonly depends?: string;
  readonly isEssential?: boolean;
}

function stanza({ name, version, depends, isEssential }: Package, status?: string): string {
  return [
    `Package: ${name}`,
    `Version: ${version}`,
    "Architecture: amd64",
    "Maintainer: Nobody <nobody@example.com>",
    `Description: ${name}`,
    ...(depends === undefined ? [] : [`Depends: ${depends}`]),
    ...(isEssential ? ["Essential: yes"] : []),
    ...(status === undefined
      ? [`Filename: ./${name}.deb`, "Size: 1", `SHA256: ${"0".repeat(64)}`]
      : [`Status: ${status}`]),
    "",
  ].join("\n");
}

/** What dpkg knows of a machine on which everything has this state; the base is installed in any case. */
function status(state: string): string {
  const isBase = ({ name }: Package) => name === "libc6" || name === "dpkg";
  return available.map((entry) => stanza(entry, isBase(entry) ? "install ok installed" : state)).join("\n");
}
