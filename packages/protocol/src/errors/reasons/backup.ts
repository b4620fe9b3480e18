// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const backupReasons = {
  backup_damaged: { code: "data_loss", meaning: "An object of the backup is damaged or missing.", hint: "use another backup", details: { backup: "string", key: "string" } },
  backup_kind_mismatch: { code: "failed_precondition", meaning: "The backup is of a standalone node, and a store is configured, or the other way round.", hint: "set SANDPIPER_STORE to restore the store of a cluster; unset it to restore the home of a standalone node", details: { backup: "string" } },
  backup_not_found: { code: "not_found", meaning: "The directory or bucket holds no complete backup.", hint: "name the directory or URL of a backup that `sandpiper backup create` has finished", details: { backup: "string" } },
  backup_secret_missing: { code: "failed_precondition", meaning: "The backup cannot be read without the secret of the node or cluster.", hint: "pass a copy of it with --secret FILE", details: { backup: "string" } },
  backup_secret_wrong: { code: "failed_precondition", meaning: "The secret does not match the backup.", hint: "pass the secret of the node or cluster that was backed up with --secret FILE", details: { backup: "string" } },
  backup_target_not_empty: { code: "already_exists", meaning: "The place for a backup is not empty.", hint: "name a new directory or an empty prefix; delete what a killed backup left", details: { backup: "string" } },
  no_home: { code: "not_found", meaning: "The home directory holds no node.", hint: "set SANDPIPER_HOME to the home of the node, or SANDPIPER_STORE to the store of the cluster", details: { path: "string" } },
  restore_target_not_empty: { code: "already_exists", meaning: "The home or store to restore into is not empty.", hint: "move the old data away, or set SANDPIPER_HOME or SANDPIPER_STORE to an empty place", details: { target: "string" } },
  restore_unfinished: { code: "failed_precondition", meaning: "A restore into this home or store has not finished.", hint: "repeat `sandpiper backup restore` with the same backup", details: { target: "string", backup: "string?" } },
  store_is_backup: { code: "failed_precondition", meaning: "The store is a backup.", hint: "restore it into another place with `sandpiper backup restore`, and set SANDPIPER_STORE to that place", details: { store: "string" } },
} as const satisfies Record<string, ErrorReasonEntry>;
