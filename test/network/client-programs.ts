import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/sdk";
import { AUTHORITY_FILE } from "./shared-bed.ts";
import type { World } from "./world/world.ts";

/** A program that people run inside of sandboxes, as they run it: without a proxy, and without other options. */
export interface ClientProgram {
  readonly name: string;
  /** The bundle that allows all it needs. */
  readonly bundle: string;
  /** Shell lines. They fail unless the program works. */
  readonly script: string;
  readonly user?: "root";
  /** What it prints in the end. */
  readonly prints: string;
  /** The hosts that it must have connected to. */
  readonly hosts: readonly string[];
  /** The targets of the rules that are enough for it; its hosts by default. */
  readonly suggests?: readonly string[];
  /** A program of the machine that is not part of set-up; without it the test is skipped. */
  readonly needs?: string;
  prepare?(sandbox: Sandbox, world: World): Promise<void>;
}

/** dpkg's own files, which a sandbox with the machine's programs does not have. */
const DPKG = [
  "mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /etc/apt/apt.conf.d /etc/apt/preferences.d",
  "mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt",
  "touch /var/lib/dpkg/status",
  `echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/user`,
  "echo 'deb [trusted=yes] http://deb.debian.org/tests/ ./' > /etc/apt/sources.list",
];

export const clientPrograms: readonly ClientProgram[] = [
  {
    name: "pip install, with dependencies",
    bundle: "@pypi",
    script: "pip3 install tern && python3 -c 'import tern, plover, dunlin; print(tern.version)'",
    prints: "1.0.0\n",
    hosts: ["pypi.org", "files.pythonhosted.org"],
    suggests: ["@pypi"],
  },
  {
    name: "npm ci, with dependencies",
    bundle: "@npm",
    script: `cd /tmp/program && npm ci && node -e 'console.log(require("tern"), require("dunlin"))'`,
    prints: "tern 1.0.0 dunlin 1.0.0\n",
    hosts: ["registry.npmjs.org"],
    prepare: async (sandbox, world) => {
      const manifest = { name: "program", version: "1.0.0", dependencies: { tern: "1.0.0" } };
      await sandbox.files.write("/tmp/program/package.json", JSON.stringify(manifest));
      await sandbox.files.write("/tmp/program/package-lock.json", world.npmLockFile);
    },
  },
  {
    name: "git clone and push over HTTPS",
    bundle: "@github",
    script: [
      "git clone https://github.com/birds/tern.git /tmp/https && cd /tmp/https",
      "git config user.name t && git config user.email t@site.example",
      "git commit --allow-empty -m More && git push origin HEAD:refs/heads/pushed-over-https",
      "git ls-remote origin | grep -c pushed-over-https; cat README",
    ].join(" && "),
    prints: "1\na tern\n",
    hosts: ["github.com"],
  },
  {
    name: "git clone over SSH",
    bundle: "@github",
    script: "chmod 600 /tmp/git-key && git clone git@github.com:birds/tern.git /tmp/ssh && cat /tmp/ssh/README",
    prints: "a tern\n",
    hosts: ["github.com"],
    prepare: async (sandbox, world) => {
      await sandbox.files.write("/tmp/git-key", readFileSync(join(world.directory, "git-key"), "utf8"));
    },
  },
  {
    name: "apt-get update and install, with dependencies",
    bundle: "@debian",
    user: "root",
    script: [...DPKG, "apt-get update", "apt-get install -y tern", "/opt/birds/tern"].join(" && "),
    prints: "tern calls\nplover answers\n",
    hosts: ["deb.debian.org"],
  },
  {
    name: "go mod download, with dependencies",
    bundle: "@go",
    // Without the checksum database, which has only public modules.
    script: [
      "mkdir /tmp/module && cd /tmp/module && printf 'module m\\nrequire birds.example/tern v1.0.0\\n' > go.mod",
      "export GONOSUMDB=birds.example && /usr/local/go/bin/go mod download birds.example/tern",
      "ls /home/user/go/pkg/mod/birds.example",
    ].join(" && "),
    prints: "tern@v1.0.0\n",
    hosts: ["proxy.golang.org"],
    needs: "/usr/local/go/bin/go",
  },
];

/** Variables that a machine with the tests' authority would have; none names a proxy. */
export const clientEnv: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: AUTHORITY_FILE,
  PIP_BREAK_SYSTEM_PACKAGES: "1",
  GIT_SSH_COMMAND: "ssh -i /tmp/git-key -o StrictHostKeyChecking=accept-new",
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
};
