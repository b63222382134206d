# What a row of a comparison says in words.

def verdict_words: {better: "better", worse: "**worse**", no_effect: "no effect seen", not_compared: "not compared"};

# A change that does not remain after Holm's correction for all rows of its kind is one that chance may have made.
def verdict:
  ((.verdict == "better" or .verdict == "worse") and (.p_holm == null or .p_holm >= 0.05)) as $chance
  | if $chance then "\(.verdict) (may be chance)" else verdict_words[.verdict] end;
