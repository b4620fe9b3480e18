import type { ErrorReasonEntry } from "../error-reason.ts";

export const fileReasons = {
  bad_archive: {
    code: "invalid_argument",
    meaning: "The uploaded archive cannot be read, or has an entry without a name.",
    hint: "send an uncompressed tar archive of a directory",
  },
  bad_path: {
    code: "invalid_argument",
    meaning: "The path is empty, too long, contains NUL, or cannot be used for this operation.",
    hint: "correct the path",
  },
  binary_file: {
    code: "invalid_argument",
    meaning: "The file is binary and cannot be read as text.",
    hint: "use download_file, or a command such as file or xxd",
  },
  busy: {
    code: "failed_precondition",
    meaning: "The file or directory is in use.",
    hint: "end the processes that use it, and retry",
  },
  changed_meanwhile: {
    code: "failed_precondition",
    meaning: "The file changed during the operation.",
    hint: "retry",
  },
  connection_refused: {
    code: "unavailable",
    meaning: "Nothing in the sandbox listens on this port or socket.",
    hint: "start the server, or retry when it listens",
  },
  connection_reset: {
    code: "unavailable",
    meaning: "The program in the sandbox closed the connection.",
    hint: "retry",
  },
  directory_not_empty: {
    code: "failed_precondition",
    meaning: "The directory is not empty.",
    hint: "remove it with recursive: true",
  },
  disk_full: {
    code: "resource_exhausted",
    meaning: "The disk of the sandbox or of the node is full.",
    hint: "free space on the disk, or create the sandbox with a larger diskMib",
    details: { freeBytes: "number?", minFreeBytes: "number?" },
  },
  ended_early: {
    code: "data_loss",
    meaning: "The file became shorter while it was being read.",
    hint: "read it again",
  },
  file_exists: {
    code: "already_exists",
    meaning: "A file with this name already exists.",
    hint: "remove it first, or use overwrite: true where the operation has it",
  },
  file_too_large: {
    code: "resource_exhausted",
    meaning: "The file is longer than maxBytes and was not read into memory.",
    hint: "read it with files.read(), which streams, or raise maxBytes",
    details: { path: "string", maxBytes: "number" },
  },
  invalid_base64: {
    code: "invalid_argument",
    meaning: "The content is not valid base64.",
    hint: "encode the bytes in base64, or use write_file for text",
  },
  io_error: {
    code: "internal",
    meaning: "A system call failed in the sandbox.",
    hint: "the message has the system's error",
  },
  is_a_directory: {
    code: "failed_precondition",
    meaning: "The path names a directory.",
    hint: "name a file",
  },
  link_failed: {
    code: "failed_precondition",
    meaning: "A symbolic link could not be created in the sandbox.",
    hint: "write to a directory that the sandbox's user may write to, in an image that has ln",
  },
  no_such_file: {
    code: "not_found",
    meaning: "The file or directory does not exist in the sandbox.",
    hint: "list the directory to see its files",
  },
  not_a_directory: {
    code: "failed_precondition",
    meaning: "The path, or a part of it, is not a directory.",
    hint: "name a directory",
  },
  not_a_file: {
    code: "failed_precondition",
    meaning: "The path names a device, pipe or socket.",
    hint: "use a process in the sandbox to read it, or a tunnel for a socket",
  },
  not_permitted: {
    code: "permission_denied",
    meaning: "The sandbox's user may not do this with the file or directory.",
    hint: "change the permissions, or run a command as another user",
  },
  not_text: {
    code: "failed_precondition",
    meaning: "The file is not UTF-8.",
    hint: "read it as a stream of bytes",
  },
  path_escapes: {
    code: "invalid_argument",
    meaning: "An archive entry could lead outside of the target directory.",
    hint: 'create the archive with relative names and without ".."',
  },
  path_through_link: {
    code: "failed_precondition",
    meaning: "The archive has entries below a path that is a link or a file in the sandbox.",
    hint: "remove it first, or unpack elsewhere",
  },
  too_large: {
    code: "failed_precondition",
    meaning: "The file or directory is too large for one answer of the agent.",
    hint: "read it as a stream",
  },
  too_many_entries: {
    code: "resource_exhausted",
    meaning: "The directory has too many entries for one list.",
    hint: "list it with files.list(), which streams",
    details: { path: "string", maxEntries: "number" },
  },
  too_many_files: {
    code: "resource_exhausted",
    meaning: "The directory tree has too many entries for one answer.",
    hint: "list it in parts with a smaller depth, or read it as an archive",
    details: { limit: "number" },
  },
  too_many_links: {
    code: "invalid_argument",
    meaning: "The archive has too many symbolic links.",
    hint: "unpack it in parts",
    details: { limit: "number" },
  },
  too_many_open_files: {
    code: "resource_exhausted",
    meaning: "The sandbox has as many open files as it may have.",
    hint: "close files, or end processes that hold them",
  },
  unsupported_entry: {
    code: "invalid_argument",
    meaning: "The archive has an entry that is not a file, directory or symbolic link.",
    hint: "leave it out; tar's --hard-dereference turns hard links into files",
  },
  upload_too_large: {
    code: "invalid_argument",
    meaning: "The content is larger than one upload carries.",
    hint: "upload it in parts to several files, and join them with cat",
  },
  watch_limit: {
    code: "resource_exhausted",
    meaning: "The system does not allow as many watches as the directory tree needs.",
    hint: "watch a smaller tree, or raise fs.inotify.max_user_watches",
  },
} as const satisfies Record<string, ErrorReasonEntry>;
