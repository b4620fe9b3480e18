// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const clientReasons = {
  aborted: { code: "canceled", meaning: "The caller canceled the operation." },
  ambiguous_name: { code: "invalid_argument", meaning: "The text on the command line fits several ids or names.", hint: "write more of the id" },
  answer_cut: { code: "unavailable", meaning: "The node's answer ended before the image was complete.", hint: "retry: downloaded layers are kept" },
  bad_cursor: { code: "invalid_argument", meaning: "The cursor does not come from this list.", hint: "give the nextCursor of an earlier page unchanged, or none to start at the beginning" },
  cannot_keep: { code: "failed_precondition", meaning: "The MCP server cannot keep a sandbox, because its sandboxes end with it.", hint: "create it without keep, or have the user start a node with: sandpiper up" },
  client_closed: { code: "canceled", meaning: "The client was closed during the operation.", hint: "create a new client" },
  download_too_large: { code: "resource_exhausted", meaning: "The download is larger than the whole disk of the sandbox.", hint: "if the size is right, give the sandbox a larger disk with --disk MIB" },
  interrupted: { code: "canceled", meaning: "The user interrupted the command." },
  invalid_id: { code: "invalid_argument", meaning: "The id contains characters that no id of a node has.", hint: "give an id that the node returned" },
  invalid_url: { code: "invalid_argument", meaning: "The node's URL is not an http or https address.", hint: "correct the URL, or leave it out" },
  no_node: { code: "unavailable", meaning: "No node runs at the address; the message says how to start one." },
  node_unreachable: { code: "unavailable", meaning: "The node cannot be reached.", hint: "start one with `sandpiper up` or `npm start`, or set SANDPIPER_URL to its address", details: { url: "string?" } },
  not_downloadable: { code: "invalid_argument", meaning: "The path in the sandbox is neither a file nor a directory.", hint: "name a file or a directory" },
  not_in_memory: { code: "unimplemented", meaning: "The in-memory server for tests lacks this operation.", hint: "use a node for this test" },
  output_failed: { code: "unavailable", meaning: "The CLI could not write the command's output, and killed the command.", hint: "check where the output goes" },
  timeout_ignored: { code: "deadline_exceeded", meaning: "The command outlived its timeout, so the CLI destroyed the sandbox.", hint: "do not trust its output: the command may have taken over the sandbox's agent" },
  unexpected_answer: { code: "unavailable", meaning: "The server's answer is not one of a Sandpiper node.", hint: "check that the address is that of a Sandpiper node", details: { status: "number" } },
  unreadable_upload: { code: "invalid_argument", meaning: "The file or directory to upload cannot be read.", hint: "name a file or directory that you may read" },
  untrusted_path: { code: "permission_denied", meaning: "The sandbox lists a path that could lead outside of the download directory.", hint: "do not trust anything from this sandbox" },
  usage: { code: "invalid_argument", meaning: "The command line is wrong.", hint: "run the command with --help" },
} as const satisfies Record<string, ErrorReasonEntry>;
