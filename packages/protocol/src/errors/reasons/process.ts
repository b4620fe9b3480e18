import type { ErrorReasonEntry } from "../error-reason.ts";

export const processReasons = {
  bad_argv: {
    code: "invalid_argument",
    meaning: "The list of arguments does not begin with a program.",
    hint: "give the program as the first argument",
  },
  bad_environment: {
    code: "invalid_argument",
    meaning: 'The name of an environment variable is empty or contains "=" or NUL.',
    hint: "correct the name",
  },
  bad_process_id: {
    code: "invalid_argument",
    meaning: 'A process id has 1 to 64 letters, digits, "_" and "-".',
    hint: "choose another id",
  },
  bad_size: {
    code: "invalid_argument",
    meaning: "A terminal has at least one row and one column.",
    hint: "give a size of 1 or more",
  },
  execution_running: {
    code: "failed_precondition",
    meaning: "The session is already running code; it runs one piece at a time.",
    hint: "wait for SANDBOX_EXECUTION_DONE",
  },
  input_not_read: {
    code: "deadline_exceeded",
    meaning: "The process does not read its input; part of it may have been written.",
    hint: "read the output of the process with read_process_output",
  },
  invalid_limit: {
    code: "invalid_argument",
    meaning: "maxOutputBytes is not a number of bytes.",
    hint: "give 0 or more",
  },
  no_interpreter: {
    code: "failed_precondition",
    meaning: "The sandbox has no interpreter for this language.",
    hint: "use another language, or an image that has the interpreter",
  },
  no_stdin: {
    code: "failed_precondition",
    meaning: "The process was started without standard input.",
    hint: "start it with stdin: true",
  },
  no_such_directory: {
    code: "not_found",
    meaning: "The working directory of the command does not exist.",
    hint: "create the directory, or give another cwd",
  },
  no_such_process: {
    code: "not_found",
    meaning: "The sandbox has no process with this id.",
    hint: "list the sandbox's processes to see their ids",
  },
  no_such_program: {
    code: "not_found",
    meaning: "The program, or the interpreter that its first line names, does not exist in the sandbox.",
    hint: "install the program, or use an image that has it",
  },
  no_terminal: {
    code: "failed_precondition",
    meaning: "The process has no terminal.",
    hint: "start it with a terminal",
  },
  not_executable: {
    code: "failed_precondition",
    meaning: 'The file is not executable: it lacks the permission, or is neither a program nor a script with "#!".',
    hint: "make it executable with chmod +x, or run it with its interpreter",
  },
  not_running: {
    code: "failed_precondition",
    meaning: "The process has ended.",
    hint: "start it again",
  },
  offset_beyond_end: {
    code: "invalid_argument",
    meaning: "The requested offset is beyond the end of the output.",
    hint: "read from the end of the output at most",
  },
  other_user: {
    code: "permission_denied",
    meaning: "The agent cannot run a process as this user.",
    hint: "leave user out, or use a sandbox whose agent runs as root",
  },
  output_dropped: {
    code: "data_loss",
    meaning: "The journal dropped output before it was read.",
    hint: "read faster, or start the process with a larger journalBytes",
  },
  process_ended: {
    code: "failed_precondition",
    meaning: "The process has ended and takes no input.",
    hint: "read its output with read_process_output, or start it again",
  },
  process_exists: {
    code: "already_exists",
    meaning: "The sandbox already has a process with this id.",
    hint: "use another id",
  },
  process_limit: {
    code: "resource_exhausted",
    meaning: "The sandbox has as many processes as it may have.",
    hint: "end processes, or wait until some have ended",
  },
  process_lost: {
    code: "gone",
    meaning: "The sandbox was restored or rebuilt with its files but without its processes.",
    hint: "run the command again",
  },
  process_stopped: {
    code: "unavailable",
    meaning: "Another process of the same user keeps stopping the new one.",
    hint: "end that process, and retry",
  },
  rolled_back: {
    code: "data_loss",
    meaning: "The sandbox was restored to an earlier checkpoint; later output is lost.",
    hint: "attach to the process again from offset 0 if it still exists, or run the command again",
    details: { position: "number", rollbacks: "number" },
  },
  spawn_failed: {
    code: "internal",
    meaning: "The agent could not start the process.",
    hint: "the message has the system's error; please report it",
  },
  stdin_closed: {
    code: "failed_precondition",
    meaning: "The standard input of the process is closed.",
    hint: "only a running process that was started with stdin: true or a terminal has input",
  },
  stdin_finished: {
    code: "failed_precondition",
    meaning: "Input was sent on a stream after its finish message.",
    hint: "open a new stdin stream",
  },
  stdin_full: {
    code: "resource_exhausted",
    meaning: "Too much input waits for the process.",
    hint: "send more when earlier input is acknowledged",
  },
  stdin_gap: {
    code: "failed_precondition",
    meaning: "Bytes before this input have not arrived.",
    hint: "send the missing bytes first",
    details: { offset: "number?", position: "number?" },
  },
  stdin_window_exceeded: {
    code: "resource_exhausted",
    meaning: "More input waits for the process than the window allows.",
    hint: "send more when earlier input is acknowledged",
    details: { maxFrames: "number?", waitingBytes: "number?", windowBytes: "number?" },
  },
  still_running: {
    code: "failed_precondition",
    meaning: "The process is running and cannot be removed.",
    hint: "end it with a signal and wait for it first",
  },
  too_many_arguments: {
    code: "invalid_argument",
    meaning: "The arguments and the environment of the command are too long.",
    hint: "pass long values in a file or through standard input",
  },
  unknown_language: {
    code: "invalid_argument",
    meaning: "The sandbox has no interpreter for this language, or no default language.",
    hint: "use a language that the sandbox has",
    details: { language: "string?", languages: "string[]?" },
  },
  unknown_signal: {
    code: "invalid_argument",
    meaning: "The signal does not exist.",
    hint: 'give a name such as "SIGTERM" or "TERM", or a number from 1 to 64',
  },
  unknown_user: {
    code: "invalid_argument",
    meaning: "The sandbox has no such user.",
    hint: 'give a name in the sandbox\'s /etc/passwd, "uid" or "uid:gid"',
  },
  wait_timeout: {
    code: "deadline_exceeded",
    meaning: "The process did not end within the time given.",
    hint: "wait again, or read its output with follow=true",
    details: { process: "string" },
  },
} as const satisfies Record<string, ErrorReasonEntry>;
