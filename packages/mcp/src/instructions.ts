/** Told to a model once, before it sees the tools. */
export const INSTRUCTIONS = `Runs commands and code in sandboxes: isolated Linux machines that keep files and processes between calls.
Leave sandbox_id out to use the session's default sandbox; it is made on first use and destroyed when the session ends.
Use run_command for what ends by itself, and start_process with read_process_output for servers and long jobs.
Sandboxes have no network unless they were made with one.
Take a checkpoint before something risky; restore_sandbox goes back to it, fork_sandbox tries something in a copy.`;
