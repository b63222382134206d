# The bounds of what every run is judged by without a limit of its own, and what a check is made of.

# Of packets, one that is sent again or out of order in a million is what bit errors leave on a healthy network: thirty
# times the 0.033 of a million packets of 4,178 bytes that a bit error ratio of 1e-12 damages (IEEE Std 802.3).
def rare_ppm: 1;
def is_rare: . == "retransmissions" or . == "out-of-sequence";

# Half: an interval that carried less was for more than half of its time without traffic, or on a link at half its speed;
# no repair of single packets takes so long. site policy.
def least_share: 0.5;

# An order of magnitude: where a thousandth of the messages take longer than ten others. site policy.
def most_tail: 10;

# Kept short: a check names the first offenders.
def evidence_max: 20;

def check($id; $title; $status):
  { id: $id, title: $title, status: $status, measured: null, limit: null, unit: null, source: null, evidence: [], remedy: null };

def design($section): "design, " + $section;
