import type { BackupIndex } from "@sandpiper/node/server";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { shortBytes, shortId } from "../output/format.ts";
import { noticeOf } from "../output/print.ts";
import { Progress, progressOf } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { saveRunning } from "./save-running.ts";

const jsonOption: Option = { name: "json", summary: "print a JSON object" };
const secretOption: Option = {
  name: "secret",
  value: "FILE",
  completes: "path",
  summary: "read the secret from FILE, a copy of secret or cluster-secret in the home of a node",
};
const place = `BACKUP is a directory, or a URL: file:///directory, s3://bucket/prefix or gs://bucket/prefix.`;
const which = `Uses the store that SANDPIPER_STORE names, or without one the home of a standalone node.`;

const createVerb: Verb = {
  name: "backup create",
  summary: "back up a standalone node or the store of a cluster while it runs",
  operands: ["BACKUP"],
  options: [
    { name: "save-running", summary: "save running sandboxes first, and delete these checkpoints afterwards" },
    { name: "with-secret", summary: "include the secret, which decrypts the backup" },
    jsonOption,
    quietOption,
  ],
  details: `${which} ${place} It must be empty.

The backup holds the checkpoints of sandboxes. A running sandbox is saved as it was at its newest checkpoint; one without a
checkpoint is left out. The backup is encrypted and does not contain the secret: keep a copy of it elsewhere.`,
  exitCodes: [
    ["0", "the backup is complete"],
    ["1", "the backup failed, or it lacks a damaged checkpoint or a running sandbox that could not be saved"],
  ],
  examples: [
    "sandpiper backup create --save-running /srv/backups/monday",
    "SANDPIPER_STORE=s3://sandboxes sandpiper backup create s3://backups/monday",
  ],
  completesPaths: true,
  learnMore: "docs/operations.md",
  async run(arguments_) {
    const notice = noticeOf(arguments_);
    await using saved = arguments_.has("save-running") ? await saveRunning(notice) : undefined;
    const created = await work("backing up", arguments_, async ({ config, place, onBytes }) => {
      const { createBackup } = await import("@sandpiper/node/server");
      return createBackup(config, { place, onBytes, includesSecret: arguments_.has("with-secret") });
    });
    for (const { sandbox, checkpoint } of created.damaged) {
      notice(`checkpoint ${checkpoint} of sandbox ${sandbox} is damaged, and not in the backup`);
    }
    if (!created.hasSecret) {
      const file = created.kind === "home" ? '"secret" in the home' : "the cluster's secret";
      notice(`keep a copy of ${file} elsewhere: the backup cannot be restored without it`);
    }
    await show(arguments_, created, `backed up ${counts(created)}`);
    return created.damaged.length > 0 || (saved?.failed ?? 0) > 0 ? 1 : 0;
  },
};

const verifyVerb: Verb = {
  name: "backup verify",
  summary: "read and decrypt everything in a backup",
  operands: ["BACKUP"],
  options: [secretOption, jsonOption, quietOption],
  details: place,
  examples: ["sandpiper backup verify /srv/backups/monday"],
  completesPaths: true,
  learnMore: "docs/operations.md",
  async run(arguments_) {
    const verified = await work("verifying", arguments_, async ({ config, ...options }) => {
      const { verifyBackup } = await import("@sandpiper/node/server");
      return verifyBackup(config, options);
    });
    await show(arguments_, verified, `intact: ${counts(verified)}`);
    return undefined;
  },
};

const restoreVerb: Verb = {
  name: "backup restore",
  summary: "restore a backup into an empty home or store",
  operands: ["BACKUP"],
  options: [secretOption, jsonOption, quietOption],
  details: `${which} ${place}

Start the nodes afterwards: each sandbox continues from its newest checkpoint when it is used. Keys that were revoked
after the backup are valid again.`,
  examples: [
    "sandpiper backup restore --secret /root/secret-copy /srv/backups/monday",
    "SANDPIPER_STORE=s3://sandboxes/new sandpiper backup restore s3://backups/monday",
  ],
  completesPaths: true,
  learnMore: "docs/operations.md",
  async run(arguments_) {
    const restored = await work("restoring", arguments_, async ({ config, ...options }) => {
      const { restoreBackup } = await import("@sandpiper/node/server");
      return restoreBackup(config, options);
    });
    const notice = noticeOf(arguments_);
    notice(`keys that were revoked after ${restored.createdAt} are valid again: check "sandpiper keys ls"`);
    await show(arguments_, restored, `restored ${counts(restored)}`);
    return undefined;
  },
};

export const backupVerb: Verb = {
  name: "backup",
  summary: "back up and restore a standalone node or the store of a cluster",
  options: [],
  actions: [createVerb, verifyVerb, restoreVerb],
};

type Config = Awaited<ReturnType<typeof import("@sandpiper/node/server").loadNodeConfig>>;

interface WorkOptions {
  readonly config: Config;
  readonly place: string;
  readonly secretFile: string | undefined;
  readonly onBytes: (bytes: number) => void;
}

async function work(
  label: string,
  arguments_: Arguments,
  run: (options: WorkOptions) => Promise<BackupIndex>,
): Promise<BackupIndex> {
  const { loadNodeConfig } = await import("@sandpiper/node/server");
  const config = await loadNodeConfig({ argv: [], env: process.env });
  using progress = new Progress(label, progressOf(arguments_));
  const place = arguments_.operands[0] as string;
  return run({ config, place, secretFile: arguments_.get("secret"), onBytes: (bytes) => progress.add(bytes) });
}

function counts({ kind, sandboxes, bytes }: BackupIndex): string {
  const what = kind === "home" ? "a standalone node" : "the store of a cluster";
  return `${what}: ${sandboxes.length} ${sandboxes.length === 1 ? "sandbox" : "sandboxes"}, ${shortBytes(bytes)}`;
}

/** Programs do not need the list of objects. */
async function show(arguments_: Arguments, { objects: _, ...json }: BackupIndex, summary: string): Promise<void> {
  const nameOf = ({ id, name }: { readonly id: string; readonly name: string | null }) => name ?? shortId(id);
  await showResult(arguments_, {
    json,
    lines: [
      summary,
      ...json.sandboxes.map((sandbox) => `  ${nameOf(sandbox)}, as of ${sandbox.checkpoint.createdAt}`),
      ...json.leftOut.map((sandbox) => `  not in the backup: ${nameOf(sandbox)} (${sandbox.why})`),
    ],
  });
}
