# How grave a host's finding is: on hardware, what is wrong fails and what is not known proves nothing. What only tunes is
# advisory everywhere, and what nobody wants anything of is shown.
def finding_status($scope):
  if .status == "ok" then "pass"
  elif .status == "info" then "not_judged"
  elif .severity == "advisory" then (if .status == "bad" then "advisory" else "not_judged" end)
  elif .status == "not_applicable" then
    (if $scope == "hardware" and (.id | endswith("-device")) then "inconclusive" else "not_judged" end)
  elif .status == "bad" then (if $scope == "hardware" then "fail" else "advisory" end)
  elif $scope == "hardware" then "inconclusive"
  else "not_judged" end;
