import { parseDuration } from "../duration-option.ts";
import { parseEnv } from "../env-option.ts";
import { print } from "../print.ts";
import { progressOf, quietOption } from "../quiet-option.ts";
import { commandOptions, ownFrom, ownOptions, shapeFrom, shapeOptions } from "../sandbox-options.ts";
import type { Verb } from "../verb.ts";

export const createVerb: Verb = {
  name: "create",
  usage: "[OPTIONS]",
  summary: "make a sandbox on the node and print its id",
  options: [
    ...ownOptions,
    { name: "image", value: "NAME", summary: "an image of the node (host: the node's own programs)" },
    ...shapeOptions,
    ...commandOptions,
    { name: "idle-timeout", value: "TIME", summary: "destroy it when it was not used for this time (never)" },
    { name: "json", summary: "print the whole sandbox as one JSON object" },
    quietOption,
  ],
  words: [],
  details: `
Variables, working directory and user are those of its commands unless they are given others.

Example:
  id=$(sandpiper create --name build --memory 1024 --ttl 1h)
  sandpiper exec "$id" -- make`,
  async run(arguments_) {
    const body = {
      ...shapeFrom(arguments_),
      ...ownFrom(arguments_),
      image: arguments_.get("image"),
      env: parseEnv(arguments_.all("env"), process.env),
      cwd: arguments_.get("cwd"),
      user: arguments_.get("user"),
      idleTimeoutMs: parseDuration(arguments_, "idle-timeout"),
    };
    const { requireNode } = await import("../target/find-node.ts");
    const { Progress } = await import("../progress.ts");
    const client = await requireNode();
    using progress = new Progress("starting a sandbox", progressOf(arguments_));
    const { info } = await client.sandboxes.create(body);
    progress[Symbol.dispose]();
    await print(arguments_.has("json") ? `${JSON.stringify(info)}\n` : `${info.id}\n`);
    return 0;
  },
};
