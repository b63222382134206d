# Lines of history.bash -> the checks of a run's manifest, as an array: "none" or "sealed<TAB>N", and then what was found.
def check($id; $title; $status):
  { id: $id, title: $title, status: $status, measured: null, limit: null, unit: null,
    source: "design, raw/ is what the hosts sent; raw/manifest.sha256 was made when it had been fetched", evidence: [], remedy: null };

def evidence_max: 20;

# $measured: what each of them is or does, for one of them and for several
def found($kind; $title; $one; $many; $remedy):
  map(select(.[0] == $kind) | .[1]) | select(length > 0)
  | check("manifest/" + $kind; $title; "inconclusive")
  + {measured: "\(length) \(if length == 1 then $one else $many end): \(.[0:3] | join(", "))\(if length > 3 then " and \(length - 3) more" else "" end)",
     evidence: .[0:evidence_max], remedy: $remedy};

[inputs | index("\t") as $tab | if $tab == null then [.] else [.[:$tab], .[$tab + 1:]] end] as $lines
| ($lines[1:] | [
    found("changed"; "No file was edited since it was fetched"; "file differs from raw/manifest.sha256"; "files differ from raw/manifest.sha256";
          "Do not trust this run: restore the files from where they were fetched, or measure again"),
    found("missing"; "No file was removed since it was fetched"; "file of raw/manifest.sha256 is not there"; "files of raw/manifest.sha256 are not there";
          "Restore them from where they were fetched, or measure again"),
    found("new"; "No file was added since all were fetched"; "file is not in raw/manifest.sha256"; "files are not in raw/manifest.sha256";
          "Find out who put them there; where the playbook did, run reports/seal before judging"),
    found("line"; "The manifest is one of sha256sum's"; "line of raw/manifest.sha256 is none of sha256sum's, number"; "lines of raw/manifest.sha256 are none of sha256sum's, numbers";
          "Restore raw/manifest.sha256, or measure again"),
    found("unplanned"; "Every output is of a planned flow"; "output is of a flow that the plan does not have"; "outputs are of flows that the plan does not have";
          "Restore the plan that was measured: without it nobody can say what is missing") ]) as $bad
| if $bad != [] then $bad
  elif $lines[0] == ["none"] then
    [check("manifest"; "The raw files are as they were fetched"; "not_judged")
     + {measured: "there is no raw/manifest.sha256: nobody can say whether a file was edited since"}]
  else
    [check("manifest"; "The raw files are as they were fetched"; "pass")
     + {measured: ($lines[0][1] | tonumber), unit: "files as in raw/manifest.sha256"}]
  end
