import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { chown, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join, relative } from "node:path";
import { run } from "../../../bench/run.ts";
import { eventually } from "../../../packages/providers/src/docker/testing/eventually.ts";
import { postgresProgram, sshdProgram } from "../../../scripts/setup/network.mjs";
import { addresses, ports } from "./addresses.ts";

/** PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
/** Runs a program of PostgreSQL as that user, in a mount namespace where it can read the tree that has the program. */
const AS_NOBODY = [
  "mount --make-rprivate /",
  '{ [ "$0" = / ] || mount --bind "$0" /mnt; }',
  `exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$@"`,
].join(" && ");

/** Starts PostgreSQL with an empty database that every client may use without a password. */
export async function startPostgres(directory: string): Promise<ChildProcess> {
  const { path, root, env } = postgresProgram();
  const seen = (place: string) => (root === "/" ? place : join("/mnt", relative(root, place)));
  const libraries = env["LD_LIBRARY_PATH"];
  const data = join(directory, "postgres");
  mkdirSync(data, { recursive: true });
  await chown(data, NOBODY, NOBODY);
  const options = {
    cwd: data,
    env: { ...env, PGDATA: data, ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: seen(libraries) }) },
  };
  const argv = (name: string) => ["--mount", "sh", "-c", AS_NOBODY, root, join(dirname(seen(path)), name)];
  const initial = ["--no-sync", "--auth=trust", "--username=postgres", "--no-locale"];
  await run("unshare", [...argv("initdb"), ...initial], options);
  await writeFile(join(data, "pg_hba.conf"), "host all all all trust\n");
  const settings = { listen_addresses: "*", port: `${ports.postgres}`, unix_socket_directories: "", fsync: "off" };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn("unshare", [...argv("postgres"), ...flags], { ...options, stdio: ["ignore", "ignore", "pipe"] });
  await untilListening(child, ports.postgres, "PostgreSQL");
  return child;
}

/** Starts sshd with a user `git` whose key is `directory/git-key`, and who may run Git's programs on the repositories. */
export async function startSshd(directory: string): Promise<ChildProcess> {
  const { path, env } = sshdProgram();
  const file = (name: string) => join(directory, name);
  for (const key of ["host-key", "git-key"]) {
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", file(key)]);
  }
  await writeFile(
    file("passwd"),
    "root:x:0:0::/root:/bin/sh\nsshd:x:99:65534::/run/sshd:/bin/false\ngit:x:0:0::/:/bin/sh\n",
  );
  await writeFile(
    file("sshd_config"),
    [
      `Port ${ports.ssh}`,
      `HostKey ${file("host-key")}`,
      `AuthorizedKeysFile ${file("git-key.pub")}`,
      "StrictModes no",
      "UsePAM no",
      "PermitRootLogin yes",
      "PidFile none",
      // Git's paths are absolute below this directory.
      `ForceCommand cd ${file("git")} && eval "$(echo "$SSH_ORIGINAL_COMMAND" | sed "s|'/*|'./|")"`,
      "",
    ].join("\n"),
  );
  // Its own accounts and run directory, in a mount namespace that ends with it.
  const script = [
    "mount --make-rprivate /",
    `mount --bind ${file("passwd")} /etc/passwd`,
    "mount -t tmpfs tmpfs /run",
    "mkdir -m 755 /run/sshd",
    `exec ${path} -D -e -f ${file("sshd_config")}`,
  ].join(" && ");
  const argv = ["--mount", "sh", "-c", script];
  const child = spawn("unshare", argv, { env, stdio: ["ignore", "ignore", "pipe"] });
  await untilListening(child, ports.ssh, "sshd");
  return child;
}

async function untilListening(child: ChildProcess, port: number, title: string): Promise<void> {
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await eventually(async () => hasEnded() || (await accepts(port)), `${title} does not listen`);
  if (hasEnded()) throw new Error(`${title} did not start: ${errors}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, addresses.site);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
