// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const checkpointReasons = {
  checkpoint_damaged: { code: "data_loss", meaning: "The checkpoint cannot be restored because its data is damaged or missing.", hint: "restore an earlier checkpoint of the sandbox", details: { file: "string?", chunk: "string?" } },
  checkpoint_exists: { code: "already_exists", meaning: "The sandbox already has a checkpoint of this name.", hint: "use another name, or delete that checkpoint first", details: { name: "string?" } },
  checkpoint_failed: { code: "internal", meaning: "The provider could not save the instance; the sandbox continues to run.", hint: "if it happens again, please report it" },
  checkpoint_in_use: { code: "failed_precondition", meaning: "The sandbox does not run, and this is its only checkpoint.", hint: "resume the sandbox first, or destroy it" },
  checkpoint_too_slow: { code: "deadline_exceeded", meaning: "Saving took so long that the store may have deleted parts of the checkpoint.", hint: "check how fast the store is; a retry does not send the same data again" },
  checkpoint_too_new: { code: "failed_precondition", meaning: "A newer version of Sandpiper wrote the checkpoint; it was left unchanged.", hint: "upgrade this node, or restore the sandbox on a node of the newer version", details: { found: "number", known: "number" } },
  incompatible_node: { code: "failed_precondition", meaning: "The checkpoint needs a provider, processor or version that this node lacks.", hint: "restore it on a node like the one that saved it; the checkpoint is unchanged", details: { unmet: "string[]" } },
  no_checkpoint: { code: "data_loss", meaning: "The sandbox cannot be restored because it has no checkpoint.", hint: "create a new sandbox, with a checkpoint policy if it must survive its node" },
  no_such_checkpoint: { code: "not_found", meaning: "The sandbox has no such checkpoint.", hint: "list the sandbox's checkpoints" },
  restore_failed: { code: "internal", meaning: "The restored machine did not accept its hostname, seed and time.", hint: "check that /run of the sandbox is writable for root" },
  runtime_hides_files: { code: "failed_precondition", meaning: "The container's runtime hides changes to the root filesystem from the engine.", hint: "register the runtime with the argument --overlay2=none, or choose another runtime for the docker provider" },
  state_damaged: { code: "data_loss", meaning: "The state of a sandbox in the store cannot be read.", hint: "a newer node may have written it: update this node" },
  state_too_new: { code: "failed_precondition", meaning: "A newer version of Sandpiper wrote the state of the sandbox; it was left unchanged.", hint: "upgrade this node, or use the sandbox on a node of the newer version", details: { found: "number", known: "number" } },
  unknown_image_format: { code: "unimplemented", meaning: "The engine saved the container's image in an unknown format.", hint: "use an engine whose `docker save` writes a manifest.json, as Docker and Podman do" },
} as const satisfies Record<string, ErrorReasonEntry>;
