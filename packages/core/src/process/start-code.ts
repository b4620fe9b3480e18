import type { CommandOptions } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { uploadFile } from "../agent/upload.ts";
import { spawnOptions } from "./command.ts";
import { orUnknownLanguage } from "./execute-code.ts";

export interface StartCodeOptions extends CommandOptions {
  /** Its id, chosen by the caller; random otherwise. */
  readonly id?: string | undefined;
}

/** Starts source code of any size as a process; the agent removes its file when the code has ended. */
export async function startCode(
  client: AgentClient,
  { language, code }: { readonly language: string; readonly code: string },
  options: StartCodeOptions = {},
): Promise<{ readonly id: string; readonly pid: number }> {
  const id = options.id ?? client.randomUuid();
  const path = `/tmp/code-${client.randomUuid()}`;
  await uploadFile(client, { path, mode: 0o600, owner: options.user }, code);
  try {
    const { pid } = await client.call("process.spawn", {
      process: id,
      code: { language, path, ephemeral: true },
      ...spawnOptions(options),
    });
    return { id, pid };
  } catch (thrown) {
    if (!client.isClosed) client.begin("file.remove", { path, missing_ok: true });
    throw orUnknownLanguage(client, language, thrown);
  }
}
