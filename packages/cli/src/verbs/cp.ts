import { Interruption } from "../command/interruption.ts";
import type { Verb } from "../command/verb.ts";
import { interruptibleFiles } from "../guest/interruptible-files.ts";
import { nodeGuest } from "../guest/node-guest.ts";
import { quietOption } from "../options/shared-options.ts";
import { noticeOf } from "../output/print.ts";
import { Progress, progressOf } from "../output/progress.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandbox } from "../target/find-sandbox.ts";
import { parseCopy } from "../transfer/copy-place.ts";

export const cpVerb: Verb = {
  name: "cp",
  summary: "copy files between this machine and a sandbox",
  operands: ["SRC", "DST"],
  options: [quietOption],
  completesPaths: true,
  details: `Either SRC or DST is SANDBOX:PATH. A relative PATH starts at the home directory. Write a path of this machine that
contains a colon with a slash before the colon, such as ./a:b.

Directories are copied with their contents: into DST if it is a directory or ends with a slash, otherwise as DST. File
modes are kept. Symbolic links are copied into a sandbox, but not out of it.`,
  examples: ["sandpiper cp ./project my-sandbox:/home/user/", "sandpiper cp my-sandbox:result.csv ."],
  async run(arguments_) {
    const [source, target] = arguments_.operands as [string, string];
    const place = parseCopy(source, target);
    const { copy } = await import("../transfer/copy.ts");
    using interruption = new Interruption();
    using progress = new Progress("copying", progressOf(arguments_));
    const options = { shown: `cp ${source} ${target}`, notice: noticeOf(arguments_), progress };
    const guest = nodeGuest(await findSandbox(await requireNode(), place.sandbox));
    const files = interruptibleFiles(guest.files, interruption.signal);
    return await interruption.exitCodeOf(() => copy({ ...guest, files }, place, options));
  },
};
