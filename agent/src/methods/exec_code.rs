use crate::agent::{Agent, random_id};
use crate::call::Call;
use crate::error::{AgentError, Result};
use crate::files::owner::Owner;
use crate::process::collect::{self, CollectParams};
use crate::process::language;
use crate::process::launch::{CodeParams, SpawnParams};
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;

#[derive(Deserialize)]
struct Params {
    lang: String,
    code: String,
    #[serde(flatten)]
    how: CollectParams,
}

pub async fn run(agent: &Rc<Agent>, mut call: Call) -> Result<Value> {
    let Params { lang, code, how } = call.params()?;
    let owner = Owner::choose(agent, how.user.as_deref())?;
    let path = format!("/tmp/.sandpiper-{}{}", random_id(), language::file_suffix(&lang));
    if let Err(error) = write_source(&path, &code, owner) {
        let _ = std::fs::remove_file(&path);
        return Err(AgentError::io("write the code to", &path, &error));
    }
    // From here on the launch removes the file, also when it fails.
    let code = CodeParams { language: lang, path, ephemeral: Some(true) };
    collect::run(agent, SpawnParams { code: Some(code), ..Default::default() }, how).await
}

/// For the eyes of the user who runs it alone.
fn write_source(path: &str, code: &str, owner: Owner) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(code.as_bytes())?;
    owner.apply(file.as_fd(), 0o600)
}
