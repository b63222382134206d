# Is inputs/baseline.json what its schema says, as far as judging depends on it? Texts of what is wrong; none: it is.
import "common" as c;

def figure_faults($terms):
  select((.value | type) != "object" or (.value.value | c::is_finite and . > 0 | not)
         or (.value.n | c::is_finite and . >= 1 | not) or (.value.better | IN("higher", "lower") | not)
         or (.value.cv_percent != null and (.value.cv_percent | c::is_finite and . >= 0 | not))
         or (.value.of | type) != "number" or $terms[.value.of] == null)
  | "figure \(.key | tojson) is none that an accepted run has";

def faults:
  if type != "object" or .schema != "perch.baseline/1" then "it is no perch.baseline/1 document"
  elif (.run | type) != "string" or (.accepted | type) != "string" then "it does not say which run was accepted, and when"
  elif (.fabric | type) != "object" or (.fabric.hosts | type) != "object"
       or any(.fabric.hosts[]; type != "object" or (.ends | type) != "array" or any(.ends[]; type != "object")) then
    "it does not say of which fabric it is"
  elif (.terms | type) != "array" or any(.terms[]; type != "string") or (.figures | type) != "object" then "it holds no figures"
  elif .figures == {} then "it holds no figures"
  else .terms as $terms | .figures | to_entries[] | figure_faults($terms) end;
