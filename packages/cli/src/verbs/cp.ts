import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { noticeOf } from "../output/notice.ts";

export const cpVerb: Verb = {
  name: "cp",
  usage: "[OPTIONS] SRC DST",
  summary: "copy files and directories into a sandbox of the node, or out of it",
  options: [quietOption],
  operands: { min: 2, max: 2, example: "sandpiper cp SRC SANDBOX:DST or sandpiper cp SANDBOX:SRC DST" },
  completesPaths: true,
  details: `
One of both is SANDBOX:PATH; relative paths inside start at the home directory. A path of this machine with a colon in it
is written with a slash, as ./a:b. Directories are copied with all they hold, into the target when it is a directory or
ends with a slash. Modes are kept; links go in as links and do not come out.

Examples:
  sandpiper cp ./project my-sandbox:/home/user/
  sandpiper cp my-sandbox:result.csv .`,
  async run(arguments_) {
    const [source, target] = arguments_.operands as [string, string];
    const { parseCopy } = await import("../transfer/copy-place.ts");
    const place = parseCopy(source, target);
    const { Interruption } = await import("../command/interruption.ts");
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { nodeGuest } = await import("../guest/node-guest.ts");
    const { interruptibleFiles } = await import("../guest/interruptible-files.ts");
    const { copy } = await import("../transfer/copy.ts");
    const { Progress } = await import("../output/progress.ts");
    using interruption = new Interruption();
    using progress = new Progress("copying", progressOf(arguments_));
    const options = { shown: `cp ${source} ${target}`, notice: noticeOf(arguments_), progress };
    const guest = nodeGuest(await findSandbox(await requireNode(), place.sandbox));
    const files = interruptibleFiles(guest.files, interruption.signal);
    try {
      await copy({ ...guest, files }, place, options);
    } catch (error) {
      if (interruption.exitCode === undefined) throw error;
    }
    return interruption.exitCode ?? 0;
  },
};
