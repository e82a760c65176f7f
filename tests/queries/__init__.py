NEEDS = "api fireworq prometheus retention"
