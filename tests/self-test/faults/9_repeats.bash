# shellcheck shell=bash
# Outliers and their repeats, on a composed run whose one outlier was measured again and stood well; and figures from elsewhere.

again=write-bandwidth/gamma/delta
of_again="limit/site-peers/write-bandwidth"
# a rate at 80 %, with its time
readonly REPEAT_WEAK='.bandwidth.gbit_s *= 0.8 | .bandwidth.messages_per_s *= 0.8 | .elapsed_s /= 0.8'

fault retry-none retried FAIL "$of_again" "an outlier that was never measured again" remove plan.retry.json raw/gamma/retry raw/delta/retry
fault retry-missing retried FAIL "$of_again flow/$again/* coverage path/* counters/missing" "an outlier whose repeats were planned and not measured" remove raw/gamma/retry raw/delta/retry
fault retry-half retried INCONCLUSIVE "flow/$again/4 coverage path/* counters/missing" "an outlier of whose two repeats one is missing" remove "raw/gamma/retry/flows/$again/4"
fault retry-outside retried FAIL "$of_again" "an outlier whose repeats lie outside, too" \
  edit "raw/gamma/retry/flows/$again/3/client.stdout" "$REPEAT_WEAK" , edit "raw/gamma/retry/flows/$again/4/client.stdout" "$REPEAT_WEAK"
fault retry-unlisted retried FAIL "$of_again manifest/unplanned" "repeats whose plan is gone" remove plan.retry.json
fault retry-chosen retried INCONCLUSIVE "retry/$again" "a pair that was repeated though nothing of it fell outside" \
  edit "raw/gamma/flows/$again/1/client.stdout" '.bandwidth.gbit_s /= 0.8 | .bandwidth.messages_per_s /= 0.8 | .elapsed_s *= 0.8'
fault retry-command retried FAIL "$of_again retry/plan manifest/unplanned" "repeats under another command than was planned" \
  edit plan.retry.json '.rounds[0].flows[0].client_argv |= map(if . == "64K" then "1M" else . end)'
fault retry-more retried FAIL "$of_again retry/plan manifest/unplanned" "an outlier that was repeated once and no more" edit plan.retry.json '.rounds |= .[:1]'
fault retry-again retried FAIL "$of_again retry/plan manifest/unplanned" "an outlier whose good repeat is counted three times" edit plan.retry.json '.rounds += [.rounds[-1], .rounds[-1]]'

fault imported loopback INCONCLUSIVE "imported" "figures from elsewhere in the place of a run" become_import +import/notes.md
